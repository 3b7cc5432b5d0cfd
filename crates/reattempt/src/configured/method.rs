//! What a service config says of one call's method, in the terms of the engine.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{Failure, FailureKind, Schedule, Verdict};
use reattempt_grpc::{Code, CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, RetryPolicy};
use reattempt_schedule_exponential::{Exponential, ExponentialDelays};

/// What the config that was in force when the call began says of its method; it stays so until the
/// call is over (rule CALL-6).
#[derive(Debug, Clone)]
pub(crate) struct OfMethod {
    /// `None` where no entry speaks for the method.
    config: Option<Arc<MethodConfig>>,
    /// The most attempts that the client allows (rule CALL-8).
    most_attempts: u32,
}

impl OfMethod {
    pub(super) fn new(config: Option<Arc<MethodConfig>>, most_attempts: u32) -> Self {
        Self { config, most_attempts }
    }

    fn retries(&self) -> Option<&RetryPolicy> {
        match &self.config.as_ref()?.policy {
            MethodPolicy::Retry(policy) => Some(policy),
            _ => None,
        }
    }

    fn hedging(&self) -> Option<&HedgingPolicy> {
        match &self.config.as_ref()?.policy {
            MethodPolicy::Hedging(policy) => Some(policy),
            _ => None,
        }
    }

    pub(crate) fn has_policy(&self) -> bool {
        self.config.as_ref().is_some_and(|config| config.policy != MethodPolicy::None)
    }

    /// Whether its calls are hedged. Where the client has switched that off they are those of a method
    /// that is retried and has one attempt, for what no server has seen is replaced all the same.
    pub(super) fn is_hedged(&self) -> bool {
        self.hedging().is_some() && self.most_attempts > 1
    }

    /// The most time for the call.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.config.as_ref()?.timeout
    }

    /// The most attempts; `None` for a method that has no policy.
    pub(crate) fn max_attempts(&self) -> Option<u32> {
        let retries = self.retries().map(RetryPolicy::max_attempts);
        let attempts = retries.or_else(|| self.hedging().map(HedgingPolicy::max_attempts));
        attempts.map(|attempts| attempts.min(self.most_attempts))
    }

    /// The delays between the attempts of a method that has a retry policy (rules BK-1, BK-2, BK-4).
    pub(crate) fn delays(&self) -> Option<ExponentialDelays> {
        self.retries().map(|policy| {
            // Neither is refused: the one is within its bounds, and of the other the config saw to it.
            let schedule = Exponential::symmetric(policy.initial_backoff(), 0.2)
                .and_then(|schedule| schedule.factor(policy.backoff_multiplier()));
            schedule.unwrap_or_default().max_delay(policy.max_backoff()).delays()
        })
    }

    /// The time from one attempt to the next of a method that is hedged.
    pub(crate) fn hedging_delay(&self) -> Option<Duration> {
        self.hedging().map(HedgingPolicy::hedging_delay)
    }

    /// The codes that are worth another attempt; none without a policy (rule CALL-1).
    fn codes(&self) -> CodeSet {
        let retryable = self.retries().map(RetryPolicy::retryable_codes);
        let codes = retryable.or_else(|| self.hedging().map(HedgingPolicy::non_fatal_codes));
        codes.unwrap_or_default()
    }

    /// The verdict on an attempt that has ended with this code, which is `None` for a number that no
    /// list can name (rule RET-5).
    ///
    /// What the owner of the service lists is worth repeating for every method that it speaks of.
    pub(crate) fn verdict(&self, code: Option<Code>) -> Verdict {
        match code {
            Some(Code::Ok) => Verdict::Success,
            Some(code) if self.codes().contains(code) => {
                Verdict::Unprocessed(Failure::new(kind(code)).with_code(code.number()))
            }
            _ => Verdict::Permanent,
        }
    }
}

/// What kind of failure a code tells of.
pub(crate) fn kind(code: Code) -> FailureKind {
    match code {
        Code::ResourceExhausted => FailureKind::Throttled,
        Code::DeadlineExceeded => FailureKind::Timeout,
        _ => FailureKind::Server,
    }
}
