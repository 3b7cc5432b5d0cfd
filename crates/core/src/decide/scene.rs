//! Helpers for tests of the decision: a scene that leads to a retry, and test doubles. Each test changes one part of
//! the scene. The doubles record the decision's calls, random draws and tokens.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use core::time::Duration;
use std::borrow::ToOwned;
use std::string::String;
use std::sync::{Arc, Mutex};
use std::vec;
use std::vec::Vec;

use reattempt_testing::secs;

use super::{FailedAttempt, SoFar, Terms, decide};
use crate::{
    Budget, Delays, Failure, FailureKind, Limits, NextRetry, Permit, PermitIssuer, Random, SentAt, ServerHint,
    StopReason, Verdict,
};

pub(crate) const FAILURE: Failure = Failure::new(FailureKind::Server).with_code(503);
pub(crate) const TICK: Duration = Duration::from_nanos(1);

/// A failed first attempt of a repeatable request, with every input of the decision.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    pub(crate) limits: Limits,
    pub(crate) repeatable: bool,
    pub(crate) so_far: SoFar,
    pub(crate) failed: FailedAttempt<'static>,
    /// The schedule's delay.
    pub(crate) scheduled: Option<Duration>,
    /// `true` if that delay is an interval shared by all calls.
    pub(crate) shared: bool,
    /// `true` if the schedule draws its delay between zero and that one.
    pub(crate) jittered: bool,
    /// The random number that every draw returns.
    pub(crate) draw: u64,
    /// The budget, shared by clones of the scene.
    pub(crate) bucket: Bucket,
}

/// A decision, and the calls made for it.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) decision: Result<(Duration, Permit), StopReason>,
    /// The retries for which the decision requested a delay from the schedule.
    pub(crate) asked: Vec<NextRetry>,
    /// The number of random draws. The schedule draws none.
    pub(crate) drawn: u32,
}

impl Scene {
    /// Creates a scene with three attempts within 30 s, a schedule with a delay of 1 s, and ten tokens.
    pub(crate) fn new() -> Self {
        let verdict = Verdict::Transient(FAILURE);
        let failed = FailedAttempt::new(verdict, "example.com", secs(1000)).sent_at(SentAt(0));
        Self {
            limits: Limits::default(),
            repeatable: true,
            so_far: SoFar { attempts: 1, at_once: 0, previous: None },
            failed,
            scheduled: Some(secs(1)),
            shared: false,
            jittered: false,
            draw: 0,
            bucket: Bucket::of(10),
        }
    }

    /// Returns this scene with a change applied.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// Returns this scene with a delay requested by the server.
    pub(crate) fn asking(self, delay: Duration) -> Self {
        self.with(|scene| scene.failed.classification.hint = ServerHint::After(delay))
    }

    pub(crate) fn decide(&self) -> Seen {
        let (delay, shared, jittered) = (self.scheduled, self.shared, self.jittered);
        let mut delays = Says { delay, shared, jittered, asked: Vec::new() };
        let mut random = Counted { number: self.draw, drawn: 0 };
        let terms = Terms { limits: self.limits, repeatable: self.repeatable, forbidden: None };
        let decision = decide(
            &terms,
            &self.so_far,
            (&self.failed, &self.failed.evidence()),
            &mut delays,
            &mut random,
            &self.bucket,
        );
        Seen { decision, asked: delays.asked, drawn: random.drawn }
    }

    /// Returns the delay before the retry, or the reason why there is none. The retry's token is not returned.
    pub(crate) fn outcome(&self) -> Result<Duration, StopReason> {
        let (after, permit) = self.decide().decision?;
        drop(permit.spend());
        Ok(after)
    }
}

/// Returns one scene for each reason not to retry, in the order of the checks. Everything else in a scene allows a
/// retry.
pub(crate) fn refusals() -> Vec<(StopReason, Scene)> {
    let scene = |change: fn(&mut Scene)| Scene::new().with(change);
    vec![
        (StopReason::AttemptsExhausted, scene(|s| s.limits.max_attempts = s.so_far.attempts)),
        (StopReason::NotRepeatable, scene(|s| s.repeatable = false)),
        (StopReason::BodyNotKept, scene(|s| s.failed.replayable = false)),
        (StopReason::ServerSaidStop, scene(|s| s.failed.classification.hint = ServerHint::Stop)),
        (StopReason::ScheduleEnded, scene(|s| s.scheduled = None)),
        (StopReason::ServerDelayTooLong, Scene::new().asking(secs(61))),
        (StopReason::ElapsedExhausted, scene(|s| s.failed.elapsed = secs(29) + TICK)),
        (StopReason::DeadlineExceeded, scene(|s| s.failed.until_deadline = Some(secs(1)))),
        (StopReason::BudgetExhausted, scene(|s| s.bucket = Bucket::of(0))),
    ]
}

/// A schedule with a constant delay, or one that is drawn between zero and it.
struct Says {
    delay: Option<Duration>,
    shared: bool,
    jittered: bool,
    asked: Vec<NextRetry>,
}

impl Delays for Says {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        self.asked.push(*retry);
        self.delay.map(|delay| if self.jittered { random.between(Duration::ZERO, delay) } else { delay })
    }

    fn is_shared(&self) -> bool {
        self.shared
    }
}

/// A random source that returns the same number for every draw, and counts the draws.
struct Counted {
    number: u64,
    drawn: u32,
}

impl Random for Counted {
    fn next_u64(&mut self) -> u64 {
        self.drawn += 1;
        self.number
    }
}

/// A budget that takes one token for each retry and records its calls. Clones share its state.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bucket {
    tokens: Arc<Tokens>,
    asked: Arc<Mutex<Vec<(String, Failure, Duration)>>>,
}

#[derive(Debug, Default)]
struct Tokens(Mutex<u32>);

impl Bucket {
    pub(crate) fn of(tokens: u32) -> Self {
        let bucket = Self::default();
        *bucket.tokens.0.lock().unwrap() = tokens;
        bucket
    }

    pub(crate) fn tokens(&self) -> u32 {
        *self.tokens.0.lock().unwrap()
    }

    pub(crate) fn asked(&self) -> Vec<(String, Failure, Duration)> {
        self.asked.lock().unwrap().clone()
    }
}

impl Budget for Bucket {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        self.asked.lock().unwrap().push((destination.to_owned(), *failure, now));
        let tokens = &mut *self.tokens.0.lock().unwrap();
        *tokens = tokens.checked_sub(1)?;
        Some(Permit::new(self.tokens.clone(), 1))
    }
}

impl PermitIssuer for Tokens {
    fn give_back(&self, cost: u32) {
        *self.0.lock().unwrap() += cost;
    }
}
