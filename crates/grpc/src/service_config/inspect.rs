//! The part of a service config in a snapshot: the policy of each method, and the throttle.

use std::time::Duration;

use reattempt_core::snapshot::{Inspect, Part};

use super::{CodeSet, MethodConfig, MethodPolicy, ServiceConfigHandle};
use crate::RetryThrottle;

/// Shows the policy of each method, and the throttle.
///
/// `in_force` is `false` while there is no config, so that every call fails; `error` is then why the last one was
/// refused. An entry is named like the path of its method (`/service/method`), or of its service (`/service/`). The
/// entry for all other methods has no name.
impl Inspect for ServiceConfigHandle {
    fn inspect(&self, now: Duration) -> Part {
        let current = self.current();
        let error = current.as_ref().err().and_then(|none| none.errors()).map(ToString::to_string);
        let part =
            Part::new("service_config", "").field("in_force", current.is_ok()).field_if("error", error.as_deref());
        let methods = current.iter().flat_map(|config| config.entries()).map(|(name, method)| method.inspect(name));
        part.parts(methods.collect::<Vec<_>>()).parts([self.throttle().inspect(now)])
    }
}

impl MethodConfig {
    fn inspect(&self, name: &str) -> Part {
        let part = Part::new("method", name).field_if("timeout", self.timeout);
        match &self.policy {
            MethodPolicy::None => part,
            MethodPolicy::Retry(policy) => part
                .field("max_attempts", policy.max_attempts)
                .field("initial_backoff", policy.initial_backoff)
                .field("max_backoff", policy.max_backoff)
                .field("backoff_multiplier", policy.backoff_multiplier)
                .field("retryable_codes", names(policy.retryable_codes)),
            MethodPolicy::Hedging(policy) => part
                .field("max_attempts", policy.max_attempts)
                .field("hedging_delay", policy.hedging_delay)
                .field_if("non_fatal_codes", Some(names(policy.non_fatal_codes)).filter(|names| !names.is_empty())),
        }
    }
}

/// Returns the names of the codes, with a blank between two.
fn names(codes: CodeSet) -> String {
    codes.iter().map(|code| code.name()).collect::<Vec<_>>().join(" ")
}

/// Shows the tokens left, and whether they suffice for a retry. Without settings, nothing is throttled.
impl Inspect for RetryThrottle {
    fn inspect(&self, _: Duration) -> Part {
        let tokens = self.tokens_thousandths().map(|tokens| f64::from(tokens) / 1000.0);
        Part::new("retry_throttle", "").field_if("tokens", tokens).field("throttled", self.is_throttled())
    }
}
