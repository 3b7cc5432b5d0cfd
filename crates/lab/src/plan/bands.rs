//! The bounds and the mean of each delay, whatever the limits say.

use std::time::Duration;

use reattempt::schedule::{Delays, NextRetry, Random, Schedule};
use serde::Serialize;

use super::calls::Case;
use crate::progress::Progress;

/// What there is to say of one retry; times in seconds.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Band {
    /// From 1.
    pub(super) retry: u32,
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) mean: f64,
    /// All delays up to this one, itself included.
    pub(super) waited_from: f64,
    pub(super) waited_to: f64,
    pub(super) waited_mean: f64,
    /// The share of the calls that go on failing in which this retry is made.
    pub(super) reached: f64,
}

/// Draws nothing but the lowest, or the highest, of what there is to be drawn.
struct Extreme(u64);

impl Random for Extreme {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

/// The first so many retries, or fewer where the schedule ends. `reached` has how many calls came to
/// each.
pub(super) fn bands(
    case: &Case<'_>,
    most: u32,
    reached: &[u64],
    progress: &mut Progress,
) -> Vec<Band> {
    let lowest = delays(case, &mut Extreme(0), most);
    let highest = delays(case, &mut Extreme(u64::MAX), most);
    // In whole nanoseconds, for the mean of equal delays is to be no other.
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

/// The delays of one call, each of which is really waited.
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
