//! Hedging of gRPC calls: the non-fatal codes, and a service config's hedging policy.

use std::sync::Arc;

use reattempt_core::{Failure, Verdict};
use reattempt_grpc::{Code, CodeSet, MethodHedgingPolicy, listed_code_of_head};

use super::Grpc;
use super::service_config::kind;
use crate::hedge::HedgePolicy;
use crate::protocol::Outcome;

impl<B: Clone, Mode> HedgePolicy<Grpc, B, Mode> {
    /// Sets the codes with which an attempt may fail without ending the call. If the set is empty, every
    /// error ends the call. Default: UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED.
    ///
    /// Classifiers that were added earlier take precedence. An attempt that failed without a response is treated as
    /// UNAVAILABLE.
    // HG-4, HG-5
    pub fn non_fatal_codes(self, codes: CodeSet) -> Self {
        self.set(|settings| {
            settings.protocol.http.add_classifier(Arc::new(move |outcome: Outcome<'_>| verdict(codes, outcome)));
        })
    }
}

/// Returns the verdict if only `codes` are non-fatal. Returns `None` for a success, and for an error that the default
/// rules classify.
fn verdict(codes: CodeSet, outcome: Outcome<'_>) -> Option<Verdict> {
    let (Some(status), Some(headers)) = (outcome.status(), outcome.headers()) else {
        return (!codes.contains(Code::Unavailable)).then_some(Verdict::Permanent);
    };
    let code = listed_code_of_head(status, headers).filter(|code| *code != Code::Ok)?;
    let failure = Failure::new(kind(code)).with_code(code.number());
    Some(if codes.contains(code) { Verdict::Transient(failure) } else { Verdict::Permanent })
}

/// Converts a service config's hedging policy: its attempts (up to the cap), its delay and its codes.
impl From<&MethodHedgingPolicy> for HedgePolicy<Grpc> {
    fn from(policy: &MethodHedgingPolicy) -> Self {
        HedgePolicy::grpc()
            .max_attempts(policy.max_attempts())
            .delay(policy.hedging_delay())
            .non_fatal_codes(policy.non_fatal_codes())
    }
}
