//! ureq's errors, which have no `source()`.

use std::error::Error;

use ::ureq::{Error as Failed, Timeout};
use http::StatusCode;
use reattempt_core::Verdict;

use super::{NOT_CONNECTED, Sign, TIMED_OUT};
use crate::verdict_of_status;

/// The statuses of a proxy that requires credentials or forbids the target, as the error's text has them.
const FINAL: &[&str] = &["responded 407", "responded 403"];

pub(super) fn sign(error: &Failed) -> Sign {
    match error {
        Failed::StatusCode(code) => {
            let verdict = StatusCode::from_u16(*code).map_or(Verdict::Permanent, verdict_of_status);
            Sign::Proof(verdict)
        }
        Failed::Timeout(Timeout::Resolve | Timeout::Connect) | Failed::HostNotFound | Failed::ConnectionFailed => {
            Sign::Proof(NOT_CONNECTED)
        }
        Failed::Timeout(_) => Sign::Proof(TIMED_OUT),
        Failed::ConnectProxyFailed(text) if FINAL.iter().any(|status| text.contains(status)) => {
            Sign::Proof(Verdict::Permanent)
        }
        Failed::ConnectProxyFailed(_) => Sign::Proof(NOT_CONNECTED),
        _ => Sign::None,
    }
}

/// Returns `true` if a name could not be resolved, or a proxy failed to open a tunnel.
pub(super) fn is_on_the_way(error: &Failed) -> bool {
    matches!(error, Failed::HostNotFound | Failed::Timeout(Timeout::Resolve) | Failed::ConnectProxyFailed(_))
}

/// Returns the error inside, if there is one.
pub(super) fn source(error: &Failed) -> Option<&(dyn Error + 'static)> {
    match error {
        Failed::Io(error) => Some(error),
        _ => None,
    }
}
