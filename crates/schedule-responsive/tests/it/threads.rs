//! Tests with many threads on one interval: no count is lost, and the interval stays within its bounds.

use core::time::Duration;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::support::{THROTTLED, of_the_check, refuse};
use reattempt_core::Schedule;
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::{Never, Seeded, ms};

const THREADS: u64 = 50;
const CALLS: u64 = 2_000;

fn in_threads(work: impl Fn(u64) + Sync) {
    let start = Barrier::new(usize::try_from(THREADS).expect("few"));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(thread);
            });
        }
    });
}

#[test]
fn no_count_is_lost_and_the_bounds_hold() {
    let (initial, max) = (ms(1), ms(40));
    let pace = Responsive::new().initial(initial).max(max).threshold(2);
    in_threads(|thread| {
        let random = &mut Seeded::new(thread);
        for call in 0..CALLS {
            let sent_at = pace.on_send();
            match (thread + call) % 3 {
                0 => pace.on_failure(sent_at, &THROTTLED, random),
                _ => pace.on_success(sent_at, random),
            }
            let interval = pace.interval();
            assert!(interval.is_zero() || (initial..=max).contains(&interval), "{interval:?}");
            pace.slept(Duration::from_nanos(call));
        }
    });
    let metrics = pace.metrics();
    assert_eq!(metrics.invocations, THREADS * CALLS);
    assert_eq!(metrics.times_slept, THREADS * CALLS);
    assert_eq!(metrics.total_slept, Duration::from_nanos(THREADS * CALLS * (CALLS - 1) / 2));
    assert!(metrics.times_up > 0 && metrics.times_down > 0);
    assert!(metrics.times_up <= THREADS * CALLS / 3 + THREADS);
}

#[test]
fn every_move_up_counts_once_per_moment() {
    // In each round, every thread has a refused call that was sent before the round's first refusal. The interval must
    // grow once per round.
    const ROUNDS: u64 = 12;
    let pace = of_the_check();
    let turn = Barrier::new(usize::try_from(THREADS).expect("few"));
    in_threads(|_| {
        for _ in 0..ROUNDS {
            let sent_at = pace.on_send();
            turn.wait();
            pace.on_failure(sent_at, &THROTTLED, &mut Never);
            turn.wait();
        }
    });
    assert_eq!(pace.metrics().times_up, ROUNDS);
    let alone = of_the_check();
    for _ in 0..ROUNDS {
        refuse(&alone, &mut Never);
    }
    assert_eq!(pace.interval(), alone.interval());
}

#[test]
fn every_success_counts_run_moves_once() {
    // As many successes as the threshold, from all threads at once, and one move.
    let threshold = u32::try_from(THREADS * CALLS).expect("few");
    let pace = of_the_check().threshold(threshold);
    for _ in 0..10 {
        refuse(&pace, &mut Never);
    }
    let before = pace.interval();
    let left = AtomicU64::new(THREADS * CALLS);
    in_threads(|_| {
        for _ in 0..CALLS {
            let sent_at = pace.on_send();
            if left.fetch_sub(1, Ordering::SeqCst) > 1 {
                pace.on_success(sent_at, &mut Never);
            }
        }
    });
    assert_eq!(pace.interval(), before, "one is missing yet");
    pace.on_success(pace.on_send(), &mut Never);
    assert_eq!(pace.metrics().times_down, 1);
    assert!(pace.interval() < before);
}
