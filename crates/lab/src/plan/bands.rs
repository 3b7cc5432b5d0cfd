//! The bounds and the mean of each delay, without the limits of the policy.

use std::time::Duration;

use reattempt::schedule::{Delays, NextRetry, Random, Schedule};
use serde::Serialize;

use super::calls::Case;
use crate::progress::Progress;

/// The figures of one retry; times in seconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Band {
    /// The number of the retry, from 1.
    pub(super) retry: u32,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) mean: f64,
    /// The sum of the delays up to this one, itself included.
    pub(super) waited_from: f64,
    pub(super) waited_to: f64,
    pub(super) waited_mean: f64,
    /// The share of the calls in which this retry is made, if every attempt fails.
    pub(super) reached: f64,
}

/// A random number generator that always returns the same extreme value.
struct Extreme(u64);

impl Random for Extreme {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// Returns at most `most` retries, fewer if the schedule ends. `reached` has the number of calls
/// that made each retry.
pub(super) fn bands(case: &Case<'_>, most: u32, reached: &[u64], progress: &mut Progress) -> Vec<Band> {
    let lowest = delays(case, &mut Extreme(0), most);
    let highest = delays(case, &mut Extreme(u64::MAX), most);
    // In whole nanoseconds, so that the mean of equal delays is exactly that delay.
    let mut sums = vec![0_u128; lowest.len()];
    for call in 0..case.calls {
        progress.step_of(call);
        let drawn = delays(case, &mut case.random(call), most);
        sums.iter_mut().zip(drawn).for_each(|(sum, delay)| *sum += delay.as_nanos());
    }
    let calls = f64::from(case.calls);
    let (mut waited_from, mut waited_to, mut waited_mean) = (0.0, 0.0, 0.0);
    let reached = reached.iter().copied().chain(std::iter::repeat(0));
    let rows = (1..).zip(lowest).zip(highest).zip(sums).zip(reached);
    rows.map(|((((retry, from), to), sum), reached)| {
        let (from, to) = (from.as_secs_f64(), to.as_secs_f64());
        let mean = sum as f64 / (1e9 * calls);
        waited_from += from;
        waited_to += to;
        waited_mean += mean;
        let reached = reached as f64 / calls;
        Band { retry, from, to, mean, waited_from, waited_to, waited_mean, reached }
    })
    .collect()
}

/// Returns the delays of one call, each of which is waited in full.
fn delays(case: &Case<'_>, random: &mut dyn Random, most: u32) -> Vec<Duration> {
    let mut delays = case.policy.profile.schedule.delays();
    let mut previous = None;
    let delay = |number| {
        let retry = NextRetry::new(number, case.failure).after(previous);
        previous = delays.next_delay(&retry, random);
        previous
    };
    (0..most).map_while(delay).collect()
}
