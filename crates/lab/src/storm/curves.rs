//! The measurements: counts for each second, and the figures derived from them.
//!
//! Input: the events of a storm. Output: curves over time and the figures of the table. Recovery is
//! judged by the second in which a call began, so random changes in the number of calls do not
//! matter.

use std::ops::Range;

use reattempt::StopReason;
use serde::Serialize;

use super::fleet::StoreCounts;
use super::simulation::{Ended, Watch};

/// The ticks of a second.
pub(super) const SECOND: u64 = 1000;

/// The share of the former success that must be reached again for the service to have recovered.
const RECOVERED: f64 = 0.95;

/// The least number of calls from which a share of success is computed.
const LEAST_CALLS: u64 = 100;

/// Counts by second.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(super) struct Curves {
    /// Calls that began.
    pub(super) calls: Vec<u64>,
    /// Attempts that were sent: the offered load.
    pub(super) attempts: Vec<u64>,
    /// Calls that succeeded, by the second of their success: the goodput.
    pub(super) goodput: Vec<u64>,
    /// Calls that succeeded, by the second in which they began.
    pub(super) good: Vec<u64>,
    /// Calls that ended with a failure, by the second of their end.
    pub(super) lost: Vec<u64>,
    /// Calls that ended because a guard refused to send them, by the second of their end.
    pub(super) refused: Vec<u64>,
    /// The messages of the store that clients share, if the policy has one.
    #[serde(skip)]
    pub(super) store: Option<StoreCounts>,
}

impl Watch for Curves {
    fn begun(&mut self, at: u64) {
        count(&mut self.calls, at);
    }

    fn sent(&mut self, at: u64) {
        count(&mut self.attempts, at);
    }

    fn ended(&mut self, end: &Ended) {
        match (end.failure, end.then) {
            (None, Err(StopReason::Succeeded)) => {
                count(&mut self.goodput, end.at);
                count(&mut self.good, end.started);
            }
            (None, Err(_)) => count(&mut self.refused, end.at),
            (Some(_), Err(_)) => count(&mut self.lost, end.at),
            (_, Ok(_)) => {}
        }
    }

    fn stored(&mut self, counts: StoreCounts) {
        self.store = Some(counts);
    }
}

fn count(counts: &mut Vec<u64>, at: u64) {
    let second = usize::try_from(at / SECOND).unwrap_or(usize::MAX);
    if second >= counts.len() {
        counts.resize(second + 1, 0);
    }
    counts[second] += 1;
}

/// The figures of a storm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) calls: u64,
    pub(super) attempts: u64,
    pub(super) succeeded: u64,
    /// The share of the calls that did not succeed.
    pub(super) lost: f64,
    /// The share of the calls that ended because a guard refused to send them; a part of `lost`.
    pub(super) refused: f64,
    /// Attempts for each call.
    pub(super) amplification: f64,
    /// The most attempts in a second.
    pub(super) peak_load: u64,
    /// The time from the end of the fault until calls succeeded for good; `None` if they never did.
    pub(super) recovery_seconds: Option<usize>,
    /// `true` if the storm outlived its cause until the end of the simulation.
    pub(super) metastable: bool,
    /// The messages of the store that clients share, if the policy has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store: Option<StoreCounts>,
}

impl Curves {
    /// Returns the figures. `before` are the seconds before the fault, `after` those after it. The
    /// last seconds are left out, because every storm ends when no more calls are made.
    pub(super) fn figures(&self, before: Range<usize>, after: Range<usize>) -> Figures {
        let well = RECOVERED * self.success(before);
        let calls = sum(&self.calls, after.clone());
        let stretch = (LEAST_CALLS * after.len() as u64).div_ceil(calls.max(1));
        let stretch = usize::try_from(stretch).unwrap_or(usize::MAX).clamp(1, after.len().max(1));
        let stretches = after.len() / stretch;
        let is_bad = |number: &usize| {
            let start = after.start + number * stretch;
            self.success(start..start + stretch) < well
        };
        let recovery_seconds = match (0..stretches).rev().find(is_bad) {
            None => Some(0),
            Some(last) if last + 1 == stretches => None,
            Some(last) => Some((last + 1) * stretch),
        };
        let all = |counts: &[u64]| counts.iter().sum::<u64>();
        let (calls, succeeded) = (all(&self.calls), all(&self.good));
        let share = |count: u64| if calls == 0 { 0.0 } else { count as f64 / calls as f64 };
        Figures {
            calls,
            attempts: all(&self.attempts),
            succeeded,
            lost: if calls == 0 { 0.0 } else { 1.0 - share(succeeded) },
            refused: share(all(&self.refused)),
            amplification: self.amplification(0..self.attempts.len()),
            peak_load: self.attempts.iter().copied().max().unwrap_or(0),
            recovery_seconds,
            metastable: recovery_seconds.is_none(),
            store: self.store,
        }
    }

    /// Returns the attempts for each call in these seconds; 1 without calls.
    pub(super) fn amplification(&self, seconds: Range<usize>) -> f64 {
        let calls = sum(&self.calls, seconds.clone());
        if calls == 0 { 1.0 } else { sum(&self.attempts, seconds) as f64 / calls as f64 }
    }

    /// Returns the share of success of the calls that began in these seconds; 1 without calls.
    pub(super) fn success(&self, seconds: Range<usize>) -> f64 {
        let calls = sum(&self.calls, seconds.clone());
        if calls == 0 { 1.0 } else { sum(&self.good, seconds) as f64 / calls as f64 }
    }
}

fn sum(counts: &[u64], seconds: Range<usize>) -> u64 {
    seconds.filter_map(|second| counts.get(second)).sum()
}
