//! A client and its calls: its budget, guards, endpoints and token, and the decision after a failed attempt.

use std::collections::VecDeque;
use std::time::Duration;

use reattempt::guard::Refused;
use reattempt::guard::contract::Health;
use reattempt::schedule::{CallRandom, Failure, FailureKind, Random, Schedule, SharedSchedule};
use reattempt::{StopReason, Verdict};
use reattempt_control::{EndpointSet, Trail};
use reattempt_core::event::sent_after_failure;
use reattempt_core::{Account, Call, CallEnd, Decision, Evidence, FailedAttempt, Signs, Terms, Undone};

use super::scene::Scene;
use crate::guards::Guards;
use crate::storm::{ClientBudget, Policy};

/// The destination of all calls.
pub(super) const SERVICE_NAME: &str = "service";

/// One client.
pub(super) struct Client {
    budget: ClientBudget,
    pub(super) guards: Guards,
    /// The servers, if there are several.
    pub(super) set: Option<EndpointSet<usize>>,
    pub(super) arrivals: CallRandom,
    /// The random numbers of its picks.
    pub(super) random: CallRandom,
    pub(super) token: Token,
    /// The number of its attempts, which take its connections in turn.
    pub(super) turns: usize,
}

/// A token that the client renews.
#[derive(Debug, Default)]
pub(super) struct Token {
    pub(super) version: u64,
    pub(super) renews: bool,
    /// The calls whose next attempt waits for a new token.
    pub(super) held: VecDeque<u64>,
}

/// A call that has not ended.
pub(super) struct OpenCall {
    pub(super) client: usize,
    pub(super) started: u64,
    pub(super) trail: Trail,
    /// The time of sending for evidence.
    pub(super) sent: Duration,
    random: CallRandom,
    retries: Option<Call<<SharedSchedule as Schedule>::Delays>>,
}

/// The outcome of an attempt that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    verdict: Verdict,
    undone: Option<Undone>,
    responded: bool,
    refused: Option<Refused>,
}

impl Outcome {
    const fn of(verdict: Verdict) -> Self {
        Self { verdict, undone: None, responded: false, refused: None }
    }

    /// The connection was lost after the request was sent.
    pub(super) const fn lost() -> Self {
        Self::of(Verdict::Transient(Failure::new(FailureKind::Network)))
    }

    /// The server refused the stream, or its GOAWAY excludes it.
    pub(super) const fn refused_stream() -> Self {
        let verdict = Verdict::NotProcessed(Failure::new(FailureKind::Network));
        Self { undone: Some(Undone::Refused), ..Self::of(verdict) }
    }

    /// The server accepted no connection.
    pub(super) const fn not_connected() -> Self {
        Self::of(Verdict::NotProcessed(Failure::new(FailureKind::Connect)))
    }

    /// The attempt waited for a connection that another one was opening in vain.
    pub(super) const fn no_connection() -> Self {
        Self { undone: Some(Undone::NoConnection), ..Self::not_connected() }
    }

    pub(super) const fn timeout() -> Self {
        Self::of(Verdict::Transient(Failure::new(FailureKind::Timeout)))
    }

    /// The server rejected a token that is dead. The former rule saw a status that a classifier made retryable.
    pub(super) const fn stale(former: bool) -> Self {
        let verdict = match former {
            true => Verdict::Transient(Failure::new(FailureKind::Server).with_code(401)),
            false => Verdict::renew(),
        };
        Self { responded: true, ..Self::of(verdict) }
    }

    /// A guard refused the attempt. Nothing else is between it and the retries, so nothing was sent.
    pub(super) const fn refused(refused: Refused) -> Self {
        Self { refused: Some(refused), ..Self::of(Verdict::not_processed()) }
    }

    /// Returns the health of the server. Under the former rule, each of these failures was the server's.
    pub(super) fn health(&self, former: bool) -> Health {
        let signs = Signs { undone: self.undone, ..Signs::new(self.verdict) };
        match Evidence::of(&signs).health {
            Health::Lost | Health::NotConnected | Health::Local if former => Health::Failed,
            health => health,
        }
    }
}

impl Client {
    pub(super) fn new(policy: &Policy, scene: Scene, (seed, number): (u64, u64)) -> Self {
        let mut arrivals = CallRandom::of_call(seed, number);
        let own = arrivals.next_u64();
        let [first, second] = scene.servers();
        let set = (first + second > 1).then(|| {
            let set = EndpointSet::new();
            let names = (0..first + second).map(|server| (usize::from(server >= first), server.to_string()));
            set.update(names, |name| name.parse().unwrap_or(0), Duration::ZERO);
            set
        });
        Self {
            budget: policy.budget_of_client(),
            guards: Guards::new(&policy.guards, own),
            set,
            arrivals,
            random: CallRandom::of_call(own, u64::MAX),
            token: Token::default(),
            turns: 0,
        }
    }
}

impl OpenCall {
    pub(super) fn new(client: usize, started: u64, random: CallRandom) -> Self {
        let sent = Duration::from_nanos(started);
        Self { client, started, trail: Trail::default(), sent, random, retries: None }
    }

    /// Records that a retry is sent.
    pub(super) fn on_send(&mut self, now: Duration) {
        if let Some(retries) = &mut self.retries {
            retries.on_send();
            self.sent = sent_after_failure(now);
        }
    }

    /// Decides what follows a failed attempt: the time until the next one, or the reason why there is none.
    pub(super) fn failed(
        &mut self,
        policy: &Policy,
        client: &Client,
        (outcome, elsewhere): (Outcome, bool),
        now: Duration,
    ) -> Result<Duration, StopReason> {
        let Outcome { verdict, undone, responded, refused } = outcome;
        let retries = self.retries.get_or_insert_with(|| Call::new(&policy.schedule));
        let elapsed = now.saturating_sub(Duration::from_nanos(self.started));
        let failed = FailedAttempt::new(verdict, SERVICE_NAME, now).elapsed(elapsed).sent(self.sent);
        // The layer sends the last attempt as it was kept, so it cannot be sent again.
        let replayable = retries.attempt() < policy.limits.max_attempts;
        let failed = FailedAttempt { undone, responded, refused, elsewhere, replayable, ..failed };
        let terms = Terms::new(policy.limits);
        match retries.failed(&terms, &failed, &policy.schedule, &client.budget, &mut self.random) {
            Decision::Return(reason) => {
                retries.take_account().settle(CallEnd::Failed, SERVICE_NAME, &client.budget);
                Err(reason)
            }
            Decision::Retry { after } => Ok(after),
            _ => Ok(Duration::ZERO),
        }
    }

    pub(super) fn succeed(mut self, client: &Client) {
        let account = self.retries.as_mut().map_or_else(Account::default, Call::take_account);
        account.settle(CallEnd::Succeeded, SERVICE_NAME, &client.budget);
    }
}
