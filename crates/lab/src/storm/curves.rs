//! What is measured: counts for each second, and what follows from them.
//!
//! What flows in: the happenings of a storm. What flows out: curves over time and the figures of the
//! table. Whether a service has recovered is asked of the calls by the second in which they began,
//! so that chance in how many there are does not matter.

use std::ops::Range;

use serde::Serialize;

use super::simulation::{Ended, Watch};

/// Ticks of a second.
pub(super) const SECOND: u64 = 1000;

/// Of the calls that begin in a second, so many must succeed for the service to count as well.
const WELL: f64 = 0.95;

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
    /// Calls that ended without success, by the second of their end.
    pub(super) lost: Vec<u64>,
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
            (None, _) => {
                count(&mut self.goodput, end.at);
                count(&mut self.good, end.started);
            }
            (Some(_), Err(_)) => count(&mut self.lost, end.at),
            (Some(_), Ok(_)) => {}
        }
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
    /// Attempts for each call.
    pub(super) amplification: f64,
    /// The most attempts in a second.
    pub(super) peak_load: u64,
    /// How long after the fault it was until calls succeeded, and went on to; `None` if they never
    /// did.
    pub(super) recovery_seconds: Option<usize>,
    /// Whether the storm outlived its cause to the end.
    pub(super) metastable: bool,
}

impl Curves {
    /// The figures, where `after` are the seconds after the fault, without the last ones: when no
    /// more calls are made, any storm abates.
    pub(super) fn figures(&self, after: Range<usize>) -> Figures {
        let is_bad = |second: &usize| self.success(*second..second + 1) < WELL;
        let recovery_seconds = match after.clone().rev().find(is_bad) {
            None => Some(0),
            Some(last) if last + 1 == after.end => None,
            Some(last) => Some(last + 1 - after.start),
        };
        Figures {
            calls: self.calls.iter().sum(),
            attempts: self.attempts.iter().sum(),
            succeeded: self.goodput.iter().sum(),
            amplification: self.amplification(0..self.attempts.len()),
            peak_load: self.attempts.iter().copied().max().unwrap_or(0),
            recovery_seconds,
            metastable: recovery_seconds.is_none(),
        }
    }

    /// Attempts for each call in these seconds; 1 where nobody called.
    pub(super) fn amplification(&self, seconds: Range<usize>) -> f64 {
        let calls = sum(&self.calls, seconds.clone());
        if calls == 0 { 1.0 } else { sum(&self.attempts, seconds) as f64 / calls as f64 }
    }

    /// The share of the calls that began in these seconds and succeeded; 1 where nobody called.
    pub(super) fn success(&self, seconds: Range<usize>) -> f64 {
        let calls = sum(&self.calls, seconds.clone());
        if calls == 0 { 1.0 } else { sum(&self.good, seconds) as f64 / calls as f64 }
    }
}

fn sum(counts: &[u64], seconds: Range<usize>) -> u64 {
    seconds.filter_map(|second| counts.get(second)).sum()
}
