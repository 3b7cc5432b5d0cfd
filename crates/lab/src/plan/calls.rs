//! Calls whose attempts all fail, decided by the engine attempt by attempt.

use std::collections::BTreeMap;
use std::time::Duration;

use reattempt::budget::Unlimited;
use reattempt::schedule::{CallRandom, Failure, Schedule};
use reattempt::{StopReason, Verdict};
use reattempt_core::{Call, Decision, FailedAttempt, Terms};
use serde::Serialize;

use crate::policy::Policy;
use crate::progress::Progress;
use crate::text;

/// Calls with more attempts than this are taken to be endless.
const MOST_ATTEMPTS: u32 = 1000;

/// The reason that is reported for an endless call.
const NO_LIMIT: &str = "no limit";

/// The policy, the failure and the calls of a simulation.
pub(super) struct Case<'a> {
    pub(super) policy: &'a Policy,
    pub(super) failure: Failure,
    pub(super) attempt_time: Duration,
    pub(super) calls: u32,
    pub(super) seed: u64,
}

/// The ends of calls whose attempts all fail.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Ending {
    pub(super) retries: Spread,
    /// The duration in seconds, with the time that the attempts take.
    pub(super) seconds: Spread,
    /// The share of the calls by stop reason; "no limit" for endless calls.
    pub(super) reasons: BTreeMap<String, f64>,
}

/// The least, the mean and the greatest of the values.
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
    /// Returns the random numbers of a call, by its number from 0.
    pub(super) fn random(&self, call: u32) -> CallRandom {
        CallRandom::of_call(self.seed, u64::from(call))
    }

    /// Returns the ends of the calls, and the number of calls that made each retry.
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

    /// Returns the retries of one call, its duration, and its stop reason; `None` for an endless
    /// call.
    fn call(&self, number: u32) -> (usize, Duration, Option<StopReason>) {
        let terms = Terms::new(self.policy.limits());
        let schedule = &self.policy.profile.schedule;
        let mut random = self.random(number);
        let mut call = Call::new(schedule);
        let mut elapsed = Duration::ZERO;
        for attempt in 1..=MOST_ATTEMPTS {
            elapsed = elapsed.saturating_add(self.attempt_time);
            let failed = FailedAttempt::new(Verdict::NotProcessed(self.failure), "lab", elapsed)
                .elapsed(elapsed)
                .sent_at(schedule.on_send());
            // A budget is shared by all calls, so it has no place in the simulation of one call.
            match call.failed(&terms, &failed, schedule, &Unlimited, &mut random) {
                Decision::Return(reason) => return (attempt as usize - 1, elapsed, Some(reason)),
                Decision::Retry { after } => elapsed = elapsed.saturating_add(after),
                // Only transports produce the other decisions.
                _ => {}
            }
            call.on_send();
        }
        (MOST_ATTEMPTS as usize, elapsed, None)
    }
}

impl Ending {
    /// Formats the ends as a sentence.
    pub(super) fn sentence(&self, attempt_time: Duration) -> String {
        let time = |seconds: f64| text::brief(text::seconds(seconds));
        let Self { retries, seconds, reasons } = self;
        let taking = match attempt_time.is_zero() {
            true => String::new(),
            false => format!(", after {} each time,", text::brief(attempt_time)),
        };
        if reasons.contains_key(NO_LIMIT) {
            return format!("A call that always fails{taking} does not end by itself.");
        }
        let times = match (retries.least, retries.most) {
            (1.0, 1.0) => "once".to_owned(),
            (least, most) if least == most => format!("{least} times"),
            (least, most) => format!("{least} to {most} times (mean {:.2})", retries.mean),
        };
        let end = match (time(seconds.least), time(seconds.most)) {
            (least, most) if seconds.least == seconds.most || least == most => least,
            (least, most) => format!("{least} to {most} (mean {})", time(seconds.mean)),
        };
        let reasons = self.reasons();
        format!("A call that always fails{taking} is retried {times} and ends after {end}: {reasons}.")
    }

    /// Returns the most retries if the schedule ends by itself.
    pub(super) fn schedule_ends_after(&self) -> Option<f64> {
        let ended = self.reasons.contains_key(&StopReason::ScheduleEnded.to_string());
        ended.then_some(self.retries.most)
    }

    /// Returns `true` if the calls end by anything but the number of their attempts.
    pub(super) fn ends_otherwise(&self) -> bool {
        self.reasons.keys().any(|reason| *reason != StopReason::AttemptsExhausted.to_string())
    }

    /// Lists the stop reasons, each with its share.
    pub(super) fn reasons(&self) -> String {
        let reason = |(reason, share): (&String, &f64)| match *share {
            1.0 => reason.clone(),
            share => format!("{reason} ({})", text::percent(share)),
        };
        self.reasons.iter().map(reason).collect::<Vec<_>>().join(", ")
    }
}
