//! Calls that go on failing, decided by the engine attempt by attempt.

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use reattempt::schedule::{Delays, Schedule};
use reattempt::{
    CallRandom, Decision, Failed, Failure, Judgement, StopReason, Unlimited, Verdict, decide,
};
use serde::Serialize;

use crate::error::LabError;
use crate::policy::Policy;
use crate::progress::Progress;
use crate::text;

/// Calls that make more attempts than this are taken to go on for ever.
const MOST_ATTEMPTS: u32 = 1000;

/// Why a call "ends" that does not.
const NO_LIMIT: &str = "no limit";

/// What is tried.
pub(super) struct Case<'a> {
    pub(super) policy: &'a Policy,
    pub(super) failure: Failure,
    pub(super) attempt_time: Duration,
    pub(super) calls: u32,
    pub(super) seed: u64,
}

/// How the calls end that always fail.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ending {
    pub(super) retries: Spread,
    /// In seconds, with the time that the attempts take.
    pub(super) seconds: Spread,
    /// The share of the calls by the reason why they end; "no limit" for those that do not.
    pub(super) reasons: BTreeMap<String, f64>,
}

/// The least, the mean and the most that came up.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct Spread {
    pub(super) least: f64,
    pub(super) mean: f64,
    pub(super) most: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Self {
        Self {
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            mean: values.iter().sum::<f64>() / values.len() as f64,
            most: values.iter().copied().fold(0.0, f64::max),
        }
    }
}

impl Case<'_> {
    /// The random numbers of a call, by its number from 0.
    pub(super) fn random(&self, call: u32) -> CallRandom {
        CallRandom::of_call(self.seed, u64::from(call))
    }

    /// How the calls end, and how many of them made each retry.
    pub(super) fn endings(&self, progress: &mut Progress) -> (Ending, Vec<u64>) {
        let (mut all_retries, mut seconds) = (Vec::new(), Vec::new());
        let mut counts: BTreeMap<_, u32> = BTreeMap::new();
        let mut reached: Vec<u64> = Vec::new();
        for call in 0..self.calls {
            progress.step_of(call);
            let (retries, elapsed, reason) = self.call(call);
            all_retries.push(retries as f64);
            seconds.push(elapsed.as_secs_f64());
            let reason = reason.map_or_else(|| NO_LIMIT.to_owned(), |reason| reason.to_string());
            *counts.entry(reason).or_default() += 1;
            if reached.len() < retries {
                reached.resize(retries, 0);
            }
            reached.iter_mut().take(retries).for_each(|count| *count += 1);
        }
        let share = |(reason, count)| (reason, f64::from(count) / f64::from(self.calls));
        let reasons = counts.into_iter().map(share).collect();
        let (retries, seconds) = (Spread::of(&all_retries), Spread::of(&seconds));
        (Ending { retries, seconds, reasons }, reached)
    }

    /// The retries of one call, its time, and why it ended; `None` where it does not.
    fn call(&self, call: u32) -> (usize, Duration, Option<StopReason>) {
        let limits = self.policy.limits();
        let mut random = self.random(call);
        let mut delays = self.policy.profile.schedule.delays();
        let delays: &mut dyn Delays = &mut delays;
        let mut elapsed = Duration::ZERO;
        let mut previous = None;
        for attempt in 1..=MOST_ATTEMPTS {
            elapsed = elapsed.saturating_add(self.attempt_time);
            let failed = Failed {
                judgement: Judgement::new(Verdict::Unprocessed(self.failure)),
                attempts: attempt,
                repeatable: true,
                at_hand: true,
                previous,
                admission: self.policy.profile.schedule.admit(),
                elapsed,
                until_deadline: None,
                destination: "lab",
                now: elapsed,
            };
            // A budget is shared by all calls, so it has no place in what one call does.
            match decide(&limits, &failed, delays, &mut random, &Unlimited) {
                Decision::Return(reason) => return (attempt as usize - 1, elapsed, Some(reason)),
                Decision::Retry { after, permit } => {
                    permit.spend();
                    previous = Some(after);
                    elapsed = elapsed.saturating_add(after);
                }
            }
        }
        (MOST_ATTEMPTS as usize, elapsed, None)
    }
}

impl Ending {
    /// In a sentence.
    pub(super) fn print(
        &self,
        attempt_time: Duration,
        out: &mut dyn Write,
    ) -> Result<(), LabError> {
        let time = |seconds: f64| text::duration(text::seconds(seconds));
        let Self { retries, seconds, reasons } = self;
        write!(out, "A call that always fails")?;
        if !attempt_time.is_zero() {
            write!(out, ", after {} each time,", text::duration(attempt_time))?;
        }
        if reasons.contains_key(NO_LIMIT) {
            writeln!(out, " does not end by itself.")?;
            return Ok(());
        }
        write!(out, " is retried ")?;
        if retries.most == 1.0 && retries.least == 1.0 {
            write!(out, "once")?;
        } else if retries.least == retries.most {
            write!(out, "{} times", retries.least)?;
        } else {
            write!(out, "{} to {} times ({:.2})", retries.least, retries.most, retries.mean)?;
        }
        write!(out, " and ends after ")?;
        if seconds.least == seconds.most {
            write!(out, "{}: ", time(seconds.least))?;
        } else {
            let (least, most) = (time(seconds.least), time(seconds.most));
            write!(out, "{least} to {most} ({}): ", time(seconds.mean))?;
        }
        writeln!(out, "{}.", self.reasons())?;
        Ok(())
    }

    /// Why the calls end, each reason with its share.
    pub(super) fn reasons(&self) -> String {
        let reason = |(reason, share): (&String, &f64)| match *share {
            1.0 => reason.clone(),
            share => format!("{reason} ({})", text::percent(share)),
        };
        self.reasons.iter().map(reason).collect::<Vec<_>>().join(", ")
    }
}
