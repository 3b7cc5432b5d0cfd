//! The measurements of a run: counts over time, and the figures of the table.

use std::ops::Range;

use serde::Serialize;

use super::times::{SECOND, Times};

/// The attempts are counted in stretches of 100 ms.
const STRETCH: u64 = SECOND / 10;
/// The stretches at the start in which the load is not yet the usual one.
const WARM_UP: usize = 20;
/// The share of the former success that must be reached again for the service to have recovered.
const RECOVERED: f64 = 0.95;

/// The calls that begin in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Second {
    calls: u32,
    succeeded: u32,
}

/// The counts of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    seconds: Vec<Second>,
    /// The attempts that reached a server or were refused by one, in each stretch.
    attempts: Vec<u32>,
}

/// The figures of one policy in one scene.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Figures {
    pub(super) policy: String,
    /// The share of success of the calls that begin during the fault.
    pub(super) success: f64,
    /// The attempts of all calls during the fault, for each call that begins in it.
    pub(super) attempts_per_call: f64,
    /// The most attempts in 100 ms, during the fault and after it, as a multiple of the mean before it.
    pub(super) peak: f64,
    /// The seconds from the end of the fault until calls succeed for good; `None` if they never do.
    pub(super) recovery_seconds: Option<usize>,
    /// The calls that fail in the whole run, and all calls.
    pub(super) lost: u64,
    pub(super) calls: u64,
}

impl Counts {
    pub(super) fn begun(&mut self, now: u64) {
        at(&mut self.seconds, now / SECOND).calls += 1;
    }

    pub(super) fn succeeded(&mut self, started: u64) {
        at(&mut self.seconds, started / SECOND).succeeded += 1;
    }

    pub(super) fn sent(&mut self, now: u64) {
        *at(&mut self.attempts, now / STRETCH) += 1;
    }

    pub(super) fn figures(&self, policy: String, times: &Times) -> Figures {
        let second = |time: u64| usize::try_from(time / SECOND).unwrap_or(usize::MAX);
        let stretch = |time: u64| usize::try_from(time / STRETCH).unwrap_or(usize::MAX);
        let Range { start, end } = times.fault;
        let before = self.attempts_in(WARM_UP..stretch(start)) as f64 / (stretch(start) - WARM_UP) as f64;
        let peak = self.attempts.iter().skip(stretch(start)).copied().max().unwrap_or(0);
        let (calls, succeeded) = self.sums(second(start)..second(end));
        let attempts = self.attempts_in(stretch(start)..stretch(end));
        let well = RECOVERED * self.success(0..second(start));
        let after = second(end)..second(times.end);
        let last_bad = after.clone().rev().find(|second| self.success(*second..second + 1) < well);
        let (all, good) = self.sums(0..self.seconds.len());
        Figures {
            policy,
            success: share(succeeded, calls),
            attempts_per_call: if calls == 0 { 1.0 } else { attempts as f64 / calls as f64 },
            peak: f64::from(peak) / before,
            recovery_seconds: match last_bad {
                None => Some(0),
                Some(second) if second + 1 == after.end => None,
                Some(second) => Some(second + 1 - after.start),
            },
            lost: all - good,
            calls: all,
        }
    }

    fn attempts_in(&self, stretches: Range<usize>) -> u64 {
        stretches.filter_map(|stretch| self.attempts.get(stretch)).copied().map(u64::from).sum()
    }

    fn success(&self, seconds: Range<usize>) -> f64 {
        let (calls, succeeded) = self.sums(seconds);
        share(succeeded, calls)
    }

    fn sums(&self, seconds: Range<usize>) -> (u64, u64) {
        let seconds = seconds.filter_map(|second| self.seconds.get(second));
        seconds.fold((0, 0), |(calls, succeeded), second| {
            (calls + u64::from(second.calls), succeeded + u64::from(second.succeeded))
        })
    }
}

/// Returns the share; 1 of nothing.
fn share(part: u64, of: u64) -> f64 {
    if of == 0 { 1.0 } else { part as f64 / of as f64 }
}

fn at<T: Default + Clone>(values: &mut Vec<T>, index: u64) -> &mut T {
    let index = usize::try_from(index).unwrap_or(usize::MAX);
    if values.len() <= index {
        values.resize(index + 1, T::default());
    }
    &mut values[index]
}
