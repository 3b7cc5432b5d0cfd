//! The errors of hyper and of hyper-util's legacy client.

use std::error::Error;

use hyper_util::client::legacy;
use reattempt_core::{FailureKind, Verdict};

use super::{LOST, Place, Sign, TIMED_OUT, Undone};

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    if let Some(error) = error.downcast_ref::<::hyper::Error>() {
        return Some(of_connection(error));
    }
    let error = error.downcast_ref::<legacy::Error>()?;
    error.is_connect().then_some(Sign::At(Place::Connecting))
}

fn of_connection(error: &::hyper::Error) -> Sign {
    if error.is_user() {
        // The caller's own body, whatever its error is.
        Sign::Proof(Verdict::Permanent)
    } else if error.is_canceled() || error.is_closed() {
        // A client's connection says these only of requests that it was not given yet; one that
        // went down with a request ends with another error.
        Sign::Undone(Undone::NotDispatched, FailureKind::Connect)
    } else if error.is_incomplete_message() {
        // The server may have acted and then died.
        Sign::Proof(LOST)
    } else if error.is_timeout() {
        Sign::Proof(TIMED_OUT)
    } else {
        Sign::At(Place::Connected)
    }
}
