//! Hedging of gRPC calls: which may be hedged, the codes that leave the other attempts running, and the
//! hedging policy of a service config.

use reattempt_core::{Failure, Verdict};
use reattempt_grpc::{Code, CodeSet, HedgingPolicy, listed_code_of_head};

use super::Grpc;
use super::service_config::kind;
use crate::protocol::Outcome;
use crate::{HedgePolicy, Hedgeable};

impl<B: Clone, M> HedgePolicy<Grpc, B, M> {
    /// Whether an attempt that no server's application has seen is replaced at once, in its place and
    /// under its number, once for each kind in a call (rules TR-1, TR-2, TR-6, TR-8). On by default; a
    /// replacement costs no token and is none of the attempts.
    pub fn transparent_retries(self, replaced: bool) -> Self {
        self.set(|settings| settings.protocol.replaces = replaced)
    }

    /// Sets whether a `google.rpc.RetryInfo` in the status details puts the next hedge off (rule RI-4).
    /// Off by default. It sets the least delay, and counts as a `Retry-After` does over HTTP.
    pub fn retry_info(self, read: bool) -> Self {
        self.set(|settings| settings.protocol.retry_info = read)
    }

    /// The codes with which an attempt may fail without ending the call (rules HG-4, HG-5), in place
    /// of the default's three; with none, every error ends it.
    ///
    /// A classifier that was added before is asked first. An attempt that failed without any response
    /// counts as UNAVAILABLE.
    pub fn non_fatal_codes(self, codes: CodeSet) -> Self {
        self.classify(move |outcome| verdict(codes, outcome))
    }
}

/// The verdict where `codes` are all that is not fatal; `None` for a success, and for an error whose
/// kind the table knows better.
fn verdict(codes: CodeSet, outcome: Outcome<'_>) -> Option<Verdict> {
    let Outcome::Response { status, headers } = outcome else {
        return (!codes.contains(Code::Unavailable)).then_some(Verdict::Permanent);
    };
    let code = listed_code_of_head(status, headers).filter(|code| *code != Code::Ok)?;
    let failure = Failure::new(kind(code)).with_code(code.number());
    Some(if codes.contains(code) { Verdict::Transient(failure) } else { Verdict::Permanent })
}

/// The hedging policy of a service config: its attempts, at most 5, its delay and its codes.
impl From<&HedgingPolicy> for HedgePolicy<Grpc> {
    fn from(policy: &HedgingPolicy) -> Self {
        HedgePolicy::grpc()
            .max_attempts(policy.max_attempts())
            .delay(policy.hedging_delay())
            .non_fatal_codes(policy.non_fatal_codes())
    }
}

/// Only the caller knows which methods are safe, and says so by putting the layer in (rule HG-14).
impl<Request> Hedgeable<Request> for Grpc {
    fn may_hedge(&self, _: &Request, _: bool) -> bool {
        true
    }
}
