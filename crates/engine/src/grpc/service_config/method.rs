//! A service config's entry for one method, as overrides for its calls.

use std::time::Duration;

use reattempt_core::{Failure, FailureKind, Schedule, Verdict};
use reattempt_grpc::{Code, CodeSet, MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy};
use reattempt_schedule_exponential::{Exponential, ExponentialDelays};

use crate::call::method::MethodOverrides;

fn retries(config: &MethodConfig) -> Option<&MethodRetryPolicy> {
    match &config.policy {
        MethodPolicy::Retry(policy) => Some(policy),
        _ => None,
    }
}

fn hedging(config: &MethodConfig) -> Option<&MethodHedgingPolicy> {
    match &config.policy {
        MethodPolicy::Hedging(policy) => Some(policy),
        _ => None,
    }
}

/// Returns the codes after which another attempt is made, which are none without a policy.
// CALL-1
fn codes(config: &MethodConfig) -> CodeSet {
    let retryable = retries(config).map(MethodRetryPolicy::retryable_codes);
    let codes = retryable.or_else(|| hedging(config).map(MethodHedgingPolicy::non_fatal_codes));
    codes.unwrap_or_default()
}

impl MethodOverrides for MethodConfig {
    fn has_policy(&self) -> bool {
        self.policy != MethodPolicy::None
    }

    fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    fn max_attempts(&self) -> Option<u32> {
        let attempts = retries(self).map(MethodRetryPolicy::max_attempts);
        attempts.or_else(|| hedging(self).map(MethodHedgingPolicy::max_attempts))
    }

    /// Returns the method's delays: exponential, capped, with ± 20 % jitter.
    // BK-1, BK-2, BK-4
    fn delays(&self) -> Option<ExponentialDelays> {
        retries(self).map(|policy| {
            let schedule = Exponential::symmetric(policy.initial_backoff(), 0.2).factor(policy.backoff_multiplier());
            schedule.max_delay(policy.max_backoff()).delays()
        })
    }

    fn hedging_delay(&self) -> Option<Duration> {
        hedging(self).map(MethodHedgingPolicy::hedging_delay)
    }

    /// Returns a retryable verdict for a code in the list, because the service's owner allows the retry. Lists never
    /// contain undefined numbers.
    // RET-5
    fn verdict(&self, code: Option<u16>) -> Verdict {
        match code.map(|number| Code::from_number(number.into())) {
            Some(Code::Ok) => Verdict::Success,
            Some(code) if codes(self).contains(code) => {
                Verdict::NotProcessed(Failure::new(kind(code)).with_code(code.number()))
            }
            _ => Verdict::Permanent,
        }
    }
}

/// Returns the kind of failure for a code.
pub(crate) fn kind(code: Code) -> FailureKind {
    match code {
        Code::ResourceExhausted => FailureKind::Throttled,
        Code::DeadlineExceeded => FailureKind::Timeout,
        _ => FailureKind::Server,
    }
}
