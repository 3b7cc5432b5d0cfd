//! Tests of the advice to clients that a server refuses.

use std::time::Duration;

use reattempt_control::{Advice, ServerLoad};
use reattempt_core::Random;
use reattempt_core::guard::{GuardKind, Reason, Refused};

use crate::guards::SECOND;

const START: Duration = Duration::from_secs(100);
const FULL: Refused = Refused::new(GuardKind::BULKHEAD, Reason::Full);

/// A random source that always returns the same bits.
struct Bits(u64);

impl Random for Bits {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

fn advice(load: &ServerLoad, now: Duration) -> Advice {
    load.advise(&FULL, now, &mut Bits(0))
}

/// Returns a load with this many calls, of which this many are retries.
fn arrived(calls: u32, retries: u32) -> ServerLoad {
    let load = ServerLoad::new(START);
    (0..calls).for_each(|call| load.record_arrival(call < retries, START));
    load
}

#[test]
fn delay_lets_as_many_calls_end() {
    let load = ServerLoad::new(START);
    let now = START + SECOND / 2;
    assert_eq!(advice(&load, now).after, SECOND, "nothing is known");
    (0..4).for_each(|_| load.record_end(now));
    // Eight calls per second end; two were refused, then three.
    assert_eq!(advice(&load, now).after, SECOND / 4);
    assert_eq!(advice(&load, now).after, SECOND * 3 / 8);
    (0..100).for_each(|_| load.record_end(now));
    assert_eq!(advice(&load, now).after, SECOND / 10, "the shortest");
}

#[test]
fn delay_is_known_bounded_and_spread() {
    let load = ServerLoad::new(START);
    for (wait, after) in [(0, 100), (7_000, 7_000), (31_000, 30_000)] {
        let refused = FULL.after(Duration::from_millis(wait));
        let least = load.advise(&refused, START, &mut Bits(0)).after;
        let most = load.advise(&refused, START, &mut Bits(u64::MAX)).after;
        assert_eq!(least, Duration::from_millis(after));
        assert_eq!(most, 2 * least);
    }
}

#[test]
fn retries_beyond_half_are_stopped() {
    for (calls, retries, stop) in [(20, 10, false), (20, 11, true), (19, 19, false), (21, 10, false)] {
        assert_eq!(advice(&arrived(calls, retries), START).stop, stop, "{retries} of {calls}");
    }
}

#[test]
fn counts_leave_after_two_seconds() {
    for (after, stop) in [(0, true), (999, true), (1000, true), (1999, true), (2000, false)] {
        let load = arrived(20, 20);
        load.record_arrival(true, START + Duration::from_millis(after.min(1000)));
        assert_eq!(advice(&load, START + Duration::from_millis(after)).stop, stop, "{after} ms");
    }
    assert!(!advice(&arrived(20, 20), START + 2 * SECOND).stop, "after a pause as well");
}
