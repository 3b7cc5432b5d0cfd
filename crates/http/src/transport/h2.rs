//! h2 errors: resets, GOAWAYs and the underlying io errors.
//!
//! The verdict depends on which side raised the error, because only the server can prove that it did not process a
//! request.

use std::error::Error;

use ::h2::Reason;
use reattempt_core::{FailureKind, Verdict};

use super::{LOST, Sign, Undone};

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    error.downcast_ref::<::h2::Error>().map(|error| {
        if error.is_io() {
            return Sign::Connected;
        }
        let refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        if error.is_remote() {
            // RFC 9113 §6.8 and §8.7: streams beyond the last one in a GOAWAY, and streams reset with REFUSED_STREAM,
            // were not processed. h2 reports the server's GOAWAY only for streams beyond the last one.
            match (refused, error.is_go_away()) {
                (true, _) => Sign::Undone(Undone::Refused, FailureKind::Network),
                (false, true) => Sign::Undone(Undone::Excluded, FailureKind::Network),
                (false, false) => Sign::Proof(LOST),
            }
        } else if is_ended_here(error) {
            Sign::Proof(Verdict::Permanent)
        } else if error.reason().is_some() {
            // The server violated the protocol, possibly after it had processed the request.
            Sign::Proof(LOST)
        } else {
            // The client misused h2.
            Sign::Proof(Verdict::Permanent)
        }
    })
}

/// Returns `true` if the request body failed, after which hyper resets the stream.
pub(super) fn is_callers_own(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<::h2::Error>().is_some_and(is_ended_here)
}

/// Returns `true` if the local user of h2, such as hyper, ended the stream or the connection.
fn is_ended_here(error: &::h2::Error) -> bool {
    (error.is_reset() || error.is_go_away()) && !error.is_remote() && !error.is_library()
}

/// Returns the server's reason for resetting a stream.
pub(super) fn reset(error: &(dyn Error + 'static)) -> Option<u32> {
    let error = error.downcast_ref::<::h2::Error>()?;
    let reset = error.is_remote() && error.is_reset();
    reset.then(|| error.reason()).flatten().map(u32::from)
}
