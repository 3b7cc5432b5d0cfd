//! Models of a server's load: each call counts once, in one of two buckets.

#[allow(dead_code, unreachable_pub, reason = "only what the models use")]
#[path = "../../src/guard/server_load.rs"]
mod server_load;

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use reattempt_core::Random;
use reattempt_core::guard::{GuardKind, Reason, Refused};
use server_load::ServerLoad;

use crate::time;

const NOW: Duration = Duration::from_secs(1);
/// The first bucket is over by then, but not yet forgotten.
const LATER: Duration = Duration::from_millis(2500);

struct Lowest;

impl Random for Lowest {
    fn next_u64(&mut self) -> u64 {
        0
    }
}

/// Refuses a call, and returns the delay in its advice.
fn refuse(load: &ServerLoad, now: Duration) -> Duration {
    let full = Refused::new(GuardKind::BULKHEAD, Reason::Full);
    load.advise(&full, now, &mut Lowest).after
}

/// Returns both buckets, the current one first.
fn counts(load: &ServerLoad) -> [[u32; 4]; 2] {
    let (current, state) = load.buckets();
    [current, state.before].map(|counts| [counts.arrived, counts.retries, counts.ended, counts.refused])
}

fn spawn(load: &Arc<ServerLoad>, act: fn(&ServerLoad)) -> thread::JoinHandle<()> {
    let load = Arc::clone(load);
    thread::spawn(move || act(&load))
}

/// If two calls arrive when the bucket is over, it ends once and contains the call.
#[test]
fn new_bucket_loses_no_call() {
    loom::model(|| {
        let load = Arc::new(ServerLoad::new(NOW));
        load.record_arrival(true, NOW);
        load.record_end(NOW);
        let other = spawn(&load, |load| load.record_arrival(false, LATER));
        load.record_arrival(true, LATER);
        load.record_end(LATER);
        other.join().unwrap();
        let [current, before] = counts(&load);
        assert_eq!((current, before), ([2, 1, 1, 0], [1, 1, 1, 0]));
    });
}

/// A pause forgets the old call but no new one.
#[test]
fn pause_forgets_old_calls_only() {
    loom::model(|| {
        let load = Arc::new(ServerLoad::new(NOW));
        load.record_arrival(false, NOW);
        let other = spawn(&load, |load| load.record_arrival(false, LATER * 2));
        load.record_arrival(false, LATER * 2);
        other.join().unwrap();
        let [current, before] = counts(&load);
        assert_eq!((current, before), ([2, 0, 0, 0], [0; 4]));
    });
}

/// A call whose clock was read before the bucket ended counts in that bucket or in the next.
#[test]
fn late_call_counts_once() {
    loom::model(|| {
        let load = Arc::new(ServerLoad::new(NOW));
        let other = spawn(&load, |load| load.record_arrival(false, NOW));
        load.record_arrival(false, LATER);
        other.join().unwrap();
        let [[current, ..], [before, ..]] = counts(&load);
        assert_eq!(current + before, 2);
    });
}

/// A reader sees each call once, even while a bucket ends.
#[test]
fn both_buckets_are_read_as_one() {
    loom::model(|| {
        let load = Arc::new(ServerLoad::new(NOW));
        load.record_arrival(false, NOW);
        load.record_arrival(false, NOW);
        let other = spawn(&load, |load| load.record_arrival(false, LATER));
        let [[current, ..], [before, ..]] = counts(&load);
        other.join().unwrap();
        assert!([2, 3].contains(&(current + before)), "{current} {before}");
    });
}

/// Of two concurrent refusals, the later one counts both.
#[test]
fn later_refusal_counts_the_earlier() {
    loom::model(|| {
        let load = Arc::new(ServerLoad::new(NOW));
        load.record_end(NOW);
        let other = Arc::clone(&load);
        let other = thread::spawn(move || refuse(&other, LATER));
        let after = refuse(&load, LATER).max(other.join().unwrap());
        assert_eq!(after, 2 * (LATER - NOW));
    });
}

/// A retry is counted in the same step as its arrival.
#[test]
fn no_retry_is_counted_before_it_arrives() {
    loom::model(|| {
        let load = Arc::new(ServerLoad::new(NOW));
        let other = spawn(&load, |load| load.record_arrival(true, NOW));
        let [[arrived, retries, ..], _] = counts(&load);
        assert_eq!(arrived, retries);
        other.join().unwrap();
    });
}
