//! Random numbers, the bounds of delays, and a permanently failing call under the engine.

use std::time::Duration;

use reattempt::budget::Budget;
use reattempt::profile::Profile;
use reattempt::retry::Limits;
use reattempt::schedule::{Delays, Failure, FailureKind, NextRetry, Random, Schedule};
use reattempt::{StopReason, Verdict};
use reattempt_core::{Call, Decision, FailedAttempt, Terms};

pub(crate) use reattempt_testing::{ms, secs};

pub(crate) const FAILURE: Failure = Failure::new(FailureKind::Server).with_code(503);

/// A reproducible stream of random numbers (SplitMix64).
pub(crate) struct Seeded(pub(crate) u64);

impl Random for Seeded {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

/// A random source that always draws one number: 0 is the low end of every range, `u64::MAX` the high end.
pub(crate) struct Always(pub(crate) u64);

impl Random for Always {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// Returns the minimum and the maximum of each of the first `count` delays; fewer if the schedule ends.
pub(crate) fn bounds(schedule: &impl Schedule, count: u32) -> Vec<(Duration, Duration)> {
    let ends = [0, u64::MAX].map(|draw| {
        let mut delays = schedule.delays();
        let retries = (0..count).map(|number| NextRetry::new(number, FAILURE));
        let delays = retries.map_while(|retry| delays.next_delay(&retry, &mut Always(draw)));
        delays.collect::<Vec<_>>()
    });
    let [low, high] = ends;
    low.into_iter().zip(high).collect()
}

/// The end of a call whose attempts all fail, each after `attempt`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ended {
    pub(crate) retries: u32,
    pub(crate) elapsed: Duration,
    pub(crate) reason: StopReason,
}

pub(crate) fn fail_for_good<S: Schedule>(
    profile: &Profile<S>,
    attempt: Duration,
    budget: &impl Budget,
    random: &mut dyn Random,
) -> Ended {
    let mut limits = Limits::default();
    limits.max_attempts = profile.max_attempts;
    limits.max_elapsed = profile.max_elapsed;
    let terms = Terms::new(limits);
    let mut call = Call::new(&profile.schedule);
    let mut elapsed = Duration::ZERO;
    loop {
        elapsed += attempt;
        let failed = FailedAttempt::new(Verdict::Transient(FAILURE), "example.com", elapsed).elapsed(elapsed);
        match call.failed(&terms, &failed, &profile.schedule, budget, random) {
            Decision::Return(reason) => {
                return Ended { retries: call.attempt() - 1, elapsed, reason };
            }
            Decision::Retry { after } => {
                call.on_send();
                elapsed += after;
            }
            other => unreachable!("nothing is resent here: {other:?}"),
        }
    }
}
