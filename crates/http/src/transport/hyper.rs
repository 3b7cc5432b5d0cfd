//! Errors of hyper and of hyper-util's legacy client.

use std::error::Error;

use hyper_util::client::legacy::connect::Connected;
use hyper_util::client::legacy::{self, pool};
use reattempt_core::{FailureKind, Verdict};

use super::{LOST, Sign, TIMED_OUT, Undone};

/// The text of hyper's error for a request whose connection task was dropped. No predicate identifies it: `is_user()`
/// returns `true`, as it does for the caller's own errors.
const DISPATCH_GONE: &str = "dispatch task is gone";

/// The source of that error if the connection task, which polls the caller's body, panicked.
const PANICKED: &str = "user code panicked";

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    if let Some(error) = error.downcast_ref::<::hyper::Error>() {
        return Some(of_connection(error));
    }
    error.downcast_ref::<legacy::Error>().map(of_client)
}

/// Returns `true` if the caller's own body failed, or the caller gave up.
pub(super) fn is_callers_own(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref::<::hyper::Error>();
    error.is_some_and(|error| error.is_user() && !is_dispatch_gone(error))
}

/// Returns `true` if the connection of the error used HTTP/2.
pub(super) fn is_of_http2(error: &(dyn Error + 'static)) -> bool {
    let connection = error.downcast_ref().and_then(legacy::Error::connect_info);
    error.is::<::h2::Error>() || connection.is_some_and(Connected::is_negotiated_h2)
}

fn is_dispatch_gone(error: &::hyper::Error) -> bool {
    error.to_string() == DISPATCH_GONE && !has_cause(error, PANICKED)
}

fn of_client(error: &legacy::Error) -> Sign {
    let is_before_dispatch = || {
        // The client adds the connection to the error of a request that was passed to one. A hyper error without it
        // occurred during the handshake of a new connection.
        error.connect_info().is_none() && error.source().is_some_and(|below| below.is::<::hyper::Error>())
    };
    if error.is_connect() && error.source().is_some_and(is_given_up) {
        Sign::Undone(Undone::NoConnection, FailureKind::Connect)
    } else if error.is_connect() || is_before_dispatch() {
        Sign::Connecting
    } else {
        Sign::None
    }
}

/// Returns `true` if the call waited in the pool for a connection that another call gave up or that was closed.
fn is_given_up(error: &(dyn Error + 'static)) -> bool {
    let error = error.downcast_ref();
    matches!(error, Some(pool::Error::CheckoutNoLongerWanted | pool::Error::CheckedOutClosedValue))
}

fn of_connection(error: &::hyper::Error) -> Sign {
    if error.is_user() {
        // The caller's own body failed, unless the connection task is gone.
        match is_dispatch_gone(error) {
            true => Sign::Proof(LOST),
            false => Sign::Proof(Verdict::Permanent),
        }
    } else if error.is_canceled() || error.is_closed() {
        // hyper's client returns these only for requests that had not yet been passed to the connection. A request that
        // is lost with its connection fails with another error.
        Sign::Undone(Undone::NotDispatched, FailureKind::Connect)
    } else if error.is_timeout() {
        Sign::Proof(TIMED_OUT)
    } else if error.source().is_none() {
        // The response was cut off, is not HTTP, or came without a request. The server may have processed the request.
        Sign::Proof(LOST)
    } else {
        Sign::Connected
    }
}

fn has_cause(error: &dyn Error, text: &str) -> bool {
    error.source().is_some_and(|cause| cause.to_string() == text)
}
