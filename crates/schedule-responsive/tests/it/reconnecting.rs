//! Tests of one run of failures across calls: what is counted, what a reset does, and which handles share it.

use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule, ScheduleExt, SentAt, SharedSchedule};
use reattempt_schedule_responsive::Reconnecting;
use reattempt_testing::secs;

const LOST: Failure = Failure::new(FailureKind::Network);
const BROKEN: Failure = Failure::new(FailureKind::Server).with_code(503);

/// A retry number and the delay before it, as passed to the inner schedule.
type Asked = (u32, Option<Duration>);

/// An attempt that has ended, and its failure if it failed.
type Heard = (SentAt, Option<Failure>);

/// A schedule that waits 1 s, 2 s, 3 s, … and records its inputs.
#[derive(Debug, Clone, Default)]
struct Seconds {
    asked: Arc<Mutex<Vec<Asked>>>,
    heard: Arc<Mutex<Vec<Heard>>>,
}

impl Schedule for Seconds {
    type Delays = Self;

    fn delays(&self) -> Self {
        self.clone()
    }

    fn on_send(&self) -> SentAt {
        SentAt(9)
    }

    fn on_success(&self, sent_at: SentAt, _: &mut dyn Random) {
        self.heard.lock().unwrap().push((sent_at, None));
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, _: &mut dyn Random) {
        self.heard.lock().unwrap().push((sent_at, Some(*failure)));
    }
}

impl Delays for Seconds {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        self.asked.lock().unwrap().push((retry.number, retry.previous));
        Some(secs(u64::from(retry.number) + 1))
    }
}

struct Never;

impl Random for Never {
    fn next_u64(&mut self) -> u64 {
        panic!("nothing is drawn here")
    }
}

/// Drives a call that fails this many times, as the engine does. Returns its delays.
fn call<S: Schedule>(schedule: &S, failure: Failure, times: u32) -> Vec<u64> {
    let mut delays = schedule.delays();
    let mut previous = None;
    (0..times)
        .map_while(|number| {
            let retry = NextRetry::new(number, failure).after(previous);
            previous = Some(delays.next_delay(&retry, &mut Never)?);
            previous.map(|delay| delay.as_secs())
        })
        .collect()
}

#[test]
fn run_continues_over_calls_until_reset() {
    let handle = Reconnecting::new(Seconds::default().immediate_first());
    assert_eq!(call(&handle, LOST, 3), [0, 1, 2]);
    assert_eq!(call(&handle, LOST, 2), [3, 4]);
    assert_eq!(handle.after(LOST, &mut Never), Some(secs(5)));
    assert_eq!(handle.failures(), 6);
    handle.reset();
    assert_eq!(handle.failures(), 0);
    assert_eq!(call(&handle, LOST, 2), [0, 1]);
}

#[test]
fn success_of_call_alone_changes_nothing() {
    let handle = Reconnecting::new(Seconds::default().immediate_first());
    // A server that accepts each connection and drops it at once is not called again and again.
    let delays: Vec<_> = (0..4)
        .map(|_| {
            handle.on_success(handle.on_send(), &mut Never);
            handle.after(LOST, &mut Never).unwrap().as_secs()
        })
        .collect();
    assert_eq!(delays, [0, 1, 2, 3]);
}

#[test]
fn reset_takes_every_kind_back_to_its_start() {
    let by_kind = Seconds::default().for_failures(|failure: &Failure| failure.code().is_none(), Seconds::default());
    let handle = Reconnecting::new(by_kind);
    assert_eq!(call(&handle, LOST, 2), [1, 2]);
    assert_eq!(call(&handle, BROKEN, 1), [1]);
    assert_eq!(call(&handle, LOST, 1), [3]);
    assert_eq!(call(&handle, BROKEN, 1), [2]);
    handle.reset();
    assert_eq!(call(&handle, BROKEN, 1), [1]);
    assert_eq!(call(&handle, LOST, 1), [1]);
}

#[test]
fn the_delay_before_is_that_of_the_run() {
    let seconds = Seconds::default();
    let handle = Reconnecting::new(seconds.clone());
    call(&handle, LOST, 2);
    call(&handle, LOST, 1);
    handle.reset();
    // A call that continues across a reset does not use its old delay.
    let retry = NextRetry::new(2, LOST).after(Some(secs(77)));
    handle.clone().next_delay(&retry, &mut Never);
    // The server requested a longer delay than the schedule's.
    handle.clone().next_delay(&retry, &mut Never);
    let seen = seconds.asked.lock().unwrap().clone();
    let before = |number, previous: Option<u64>| (number, previous.map(secs));
    assert_eq!(seen[..3], [before(0, None), before(1, Some(1)), before(2, Some(2))]);
    assert_eq!(seen[3..], [before(0, None), before(1, Some(77))]);
}

#[test]
fn clones_share_the_run_handles_do_not() {
    let first = Reconnecting::new(SharedSchedule::new(Seconds::default()));
    let (clone, other) = (first.clone(), Reconnecting::new(Seconds::default()));
    assert_eq!(call(&first, LOST, 2), [1, 2]);
    assert_eq!(call(&clone, LOST, 1), [3]);
    assert_eq!(call(&other, LOST, 1), [1]);
    clone.reset();
    assert_eq!(call(&first, LOST, 1), [1]);
}

#[test]
fn no_failure_is_lost_between_threads() {
    let handle = Reconnecting::new(Seconds::default());
    let mut delays: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..20).map(|_| scope.spawn(|| (0..50).filter_map(|_| handle.after(LOST, &mut Never)).collect())).collect();
        threads.into_iter().flat_map(|thread| -> Vec<Duration> { thread.join().unwrap() }).collect()
    });
    delays.sort_unstable();
    assert!(delays.into_iter().eq((1..=1000).map(secs)));
    assert_eq!(handle.failures(), 1000);
}

#[test]
fn inner_schedule_still_sees_attempts() {
    let inside = Seconds::default();
    let handle = Reconnecting::new(inside.clone());
    assert_eq!(handle.on_send(), SentAt(9));
    assert!(!handle.is_stateless());
    handle.on_failure(SentAt(9), &LOST, &mut Never);
    handle.on_success(SentAt(8), &mut Never);
    assert_eq!(*inside.heard.lock().unwrap(), [(SentAt(9), Some(LOST)), (SentAt(8), None)]);
}

#[test]
fn what_it_says_of_itself() {
    #[derive(Debug, Clone, Copy)]
    struct Ended;
    impl Schedule for Ended {
        type Delays = Self;
        fn delays(&self) -> Self {
            Ended
        }
    }
    impl Delays for Ended {
        fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
            None
        }
    }
    let handle = Reconnecting::new(Ended);
    assert_eq!(handle.after(LOST, &mut Never), None);
    assert_eq!(format!("{handle:?}"), "Reconnecting { schedule: Ended, failures: 1 }");
}

#[test]
fn it_crosses_threads() {
    fn crosses<T: Send + Sync + Clone + 'static>() {}
    crosses::<Reconnecting<SharedSchedule>>();
}

/// A shared delay remains shared, so that the stop reason names the interval.
#[test]
fn shared_delays_stay_shared() {
    let reconnecting = Reconnecting::new(reattempt_schedule_responsive::Responsive::new());
    assert!(reconnecting.delays().is_shared());
    assert!(!Reconnecting::new(Seconds::default()).delays().is_shared());
}
