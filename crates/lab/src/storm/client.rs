//! A client and its calls: when they begin, and the engine's decision after a failed attempt.
//!
//! Input: a policy, a seed, verdicts on attempts. Output: the times of calls and of retries. The
//! random streams are those of a client with a retry layer of its own, whose policy has the
//! client's seed.

use std::task::{Context, Poll, Waker};
use std::time::Duration;

use reattempt::guard::Refused;
use reattempt::schedule::{CallRandom, Random, Schedule, SharedSchedule};
use reattempt::{StopReason, Verdict};
use reattempt_core::{Account, Call, Decision, FailedAttempt, Terms};

use super::policy::{ClientBudget, Policy};
use super::tick::time;
use crate::chance::fraction;
use crate::guards::Guards;

/// A client that calls at random times (a Poisson process), even while its earlier calls are in
/// flight.
pub(super) struct Client {
    /// The seed of its policy.
    pub(super) seed: u64,
    pub(super) budget: ClientBudget,
    pub(super) guards: Guards,
    /// The number of calls that the client has made.
    pub(super) calls: u32,
    /// The number of its restarts, as of its last failure.
    pub(super) restarts: u64,
    arrivals: Arrivals,
    /// The times at which its connection is lost.
    pub(super) losses: Option<Arrivals>,
}

impl Client {
    pub(super) fn new(policy: &Policy, arrivals: Arrivals) -> Self {
        Self {
            seed: arrivals.seed,
            budget: policy.budget_of_client(),
            guards: Guards::new(&policy.guards, arrivals.seed),
            calls: 0,
            restarts: 0,
            arrivals,
            losses: None,
        }
    }

    /// Returns the time of its next call.
    pub(super) fn next_call(&mut self) -> u64 {
        self.arrivals.next()
    }

    /// Returns the time of its next lost connection.
    pub(super) fn next_loss(&mut self) -> u64 {
        self.losses.as_mut().map_or(u64::MAX, Arrivals::next)
    }
}

/// Random times, such as those of a client's calls.
pub(super) struct Arrivals {
    /// A number for the seed of the client's policy.
    pub(super) seed: u64,
    random: CallRandom,
    /// The mean time between two calls, in ticks.
    mean: f64,
    at: f64,
}

impl Arrivals {
    /// Creates the stream with this number; each client has one, with `rate` calls a second.
    pub(super) fn new(seed: u64, client: u64, rate: f64) -> Self {
        let mut random = CallRandom::of_call(seed, client);
        Self { seed: random.next_u64(), random, mean: 1000.0 / rate, at: 0.0 }
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "never below zero, and the cast saturates"
    )]
    pub(super) fn next(&mut self) -> u64 {
        self.at -= self.mean * (1.0 - fraction(&mut self.random)).ln();
        self.at.ceil() as u64
    }
}

/// A call of which an attempt has failed.
pub(super) struct Retrying {
    random: CallRandom,
    call: Call<<SharedSchedule as Schedule>::Delays>,
}

impl Retrying {
    pub(super) fn new(policy: &Policy, seed: u64, call: u32) -> Self {
        let random = CallRandom::of_call(seed, call.into());
        Self { random, call: Call::new(&policy.schedule) }
    }

    /// Records a failed attempt, or one that a guard refused. The times are those at which the call began and the
    /// attempt ended. Returns the time until the next attempt, or the reason why there is none.
    pub(super) fn failed(
        &mut self,
        policy: &Policy,
        budget: &ClientBudget,
        ending: Result<Verdict, Refused>,
        [started, now]: [u64; 2],
        sent: Duration,
    ) -> Result<Duration, StopReason> {
        let terms = Terms::new(policy.limits);
        // No other layer is between the retries and the guard, so a refusal proves that nothing was sent.
        let verdict = ending.unwrap_or_else(|_| Verdict::not_processed());
        let failed = FailedAttempt::new(verdict, DESTINATION, time(now)).elapsed(time(now - started)).sent(sent);
        // The layer sends the last attempt as it was kept, so one that a guard refuses is not at hand.
        let replayable = self.call.attempt() < policy.limits.max_attempts;
        let failed = FailedAttempt { refused: ending.err(), replayable, ..failed };
        match self.call.failed(&terms, &failed, &policy.schedule, budget, &mut self.random) {
            Decision::Return(reason) => Err(reason),
            Decision::Retry { after } => Ok(after),
            // Only transports produce the other decisions.
            _ => Ok(Duration::ZERO),
        }
    }

    /// Polls for the confirmation of a budget that asks elsewhere.
    pub(super) fn poll_confirmed(&mut self) -> Poll<Result<(), StopReason>> {
        self.call.poll_confirmed(&mut Context::from_waker(Waker::noop()))
    }

    /// Records that the retry is sent.
    pub(super) fn on_send(&mut self) {
        self.call.on_send();
    }

    /// Returns the number of the attempt that was sent last.
    pub(super) fn attempt(&self) -> u32 {
        self.call.attempt()
    }

    /// Takes the account that the budget receives at the end of the call.
    pub(super) fn take_account(&mut self) -> Account {
        self.call.take_account()
    }
}

/// The destination of all calls.
pub(super) const DESTINATION: &str = "server";
