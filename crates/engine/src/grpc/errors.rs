//! The classification of errors under gRPC. It depends on an error's origin, never on the status that a client would
//! convert it to.

// TN-10

use std::error::Error;

use http::Response;
use reattempt_core::guard::Refused;
use reattempt_core::{Classification, Failure, FailureKind, Fault, Verdict};
use reattempt_grpc::{Code, GRPC_STATUS};
use tower::BoxError;

use crate::call::errors::{causes, chain};
use crate::call::method::MethodOverrides;
use crate::call::timed_out::{TimeLimit, TimedOut};
use crate::protocol::proof::{fault_of_error, is_from_fallback};
use crate::protocol::verdict_of_error;

/// The classification of an outcome that no server sent.
///
/// As a response extension, it marks a response that a layer returns instead of an error, or whose body broke before
/// its first frame. An outer layer classifies such a response like the error, not like a server's response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// The code to look up in a service config's list, or `None` if no list applies.
    code: Option<Code>,
    /// The verdict if there is no such list.
    verdict: Verdict,
    /// The party whose fault it is, if that is not the server.
    fault: Option<Fault>,
}

impl Unanswered {
    /// The call's own deadline has passed, which ends the call.
    // DL-4
    pub const LATE: Self = Self { code: None, verdict: Verdict::Permanent, fault: None };

    /// Nothing was sent, because the request cannot be addressed to its server.
    pub const UNWRITABLE: Self = Self { code: None, verdict: Verdict::Permanent, fault: None };

    /// Nothing was sent, because there is no service config.
    pub(crate) const NOT_SENT: Self = Self {
        code: Some(Code::Unavailable),
        verdict: Verdict::NotProcessed(Failure::new(FailureKind::Connect).with_code(Code::Unavailable.number())),
        fault: None,
    };

    /// Nothing was sent, because the call would have exceeded one of the caller's own limits. No service config list
    /// applies.
    pub const TURNED_AWAY: Self = Self {
        code: None,
        verdict: Verdict::NotProcessed(Failure::new(FailureKind::Other).with_code(Code::ResourceExhausted.number())),
        fault: None,
    };

    /// An attempt exceeded its time limit while it waited for the caller's messages.
    pub const UPLOADING: Self = Self { fault: Some(Fault::Caller), ..Self::TIMED_OUT };

    /// An attempt exceeded its time limit.
    pub const TIMED_OUT: Self = Self {
        code: Some(Code::DeadlineExceeded),
        verdict: Verdict::Transient(Failure::new(FailureKind::Timeout).with_code(Code::DeadlineExceeded.number())),
        fault: None,
    };

    /// The response ended after its head, without a message or a status.
    pub(super) const CUT_OFF: Self = Self {
        code: Some(Code::Unavailable),
        verdict: Verdict::Transient(Failure::new(FailureKind::Network).with_code(Code::Unavailable.number())),
        fault: None,
    };

    /// Nothing was sent, because a guard refused the call. No service config list applies.
    pub const REFUSED: Self = Self {
        code: None,
        verdict: Verdict::NotProcessed(Failure::new(FailureKind::Other).with_code(Code::Unavailable.number())),
        fault: None,
    };

    /// Returns the classification of an error.
    ///
    /// | error | code | retried |
    /// |---|---|---|
    /// | the connection failed, or the request was never passed to it | UNAVAILABLE | for every method |
    /// | the connection was lost | UNAVAILABLE | if the call is repeatable |
    /// | the server reset the stream | gRPC's code for the reset reason | depending on the code |
    /// | a time limit of the inner client passed, such as tonic's `Endpoint::timeout` | DEADLINE_EXCEEDED | if the call is repeatable |
    // OUT-2, TN-4
    pub(super) fn of(error: &(dyn Error + 'static)) -> Self {
        let limit = time_limit(error).map(TimedOut::limit);
        if matches!(limit, Some(TimeLimit::Deadline | TimeLimit::Elapsed)) {
            return Self::LATE;
        }
        let code = code_of_error(error);
        let named = |failure: Failure| failure.with_code(code.number());
        let verdict = if own_status(error).is_some() {
            // A status that the inner service created itself, such as an interceptor's.
            reattempt_grpc::verdict_of_code(code)
        } else {
            match verdict_of_error(error) {
                Verdict::NotProcessed(failure) => Verdict::NotProcessed(named(failure)),
                // The server may have processed the request before it reset the stream.
                Verdict::Transient(_) if reattempt_http::reset_reason(error).is_some() => {
                    reattempt_grpc::verdict_of_code(code)
                }
                Verdict::Transient(failure) => Verdict::Transient(named(failure)),
                verdict => verdict,
            }
        };
        let verdict = match verdict {
            Verdict::NotProcessed(failure) if is_from_fallback(Err(error)) => Verdict::Transient(failure),
            verdict => verdict,
        };
        Self { code: Some(code), verdict, fault: fault_of_error(error) }
    }

    /// Returns the classification of an error after the head of the response. No error then proves that no server has
    /// processed the request.
    pub(super) fn of_body(error: &(dyn Error + 'static)) -> Self {
        match Self::of(error) {
            Self { verdict: Verdict::NotProcessed(failure), code, fault } => {
                Self { verdict: Verdict::Transient(failure), code, fault }
            }
            other => other,
        }
    }

    /// Returns the code of this outcome, unless the caller's own limit or deadline is its cause.
    pub(super) fn code(self) -> Option<Code> {
        self.code
    }

    /// Returns the verdict if the caller has set this one for its code, or `None` if its own stays.
    ///
    /// A setting can end the retries or allow them. It proves nothing about the request, and an attempt without an
    /// answer is no success.
    pub(super) fn overridden_by(self, set: Verdict) -> Option<Verdict> {
        match (self.verdict, set) {
            (_, Verdict::Permanent) => Some(Verdict::Permanent),
            (Verdict::Permanent, Verdict::Transient(failure) | Verdict::NotProcessed(failure)) => {
                Some(Verdict::Transient(failure))
            }
            _ => None,
        }
    }

    /// Returns the classification of this outcome.
    ///
    /// If a service config has a policy for the method, its list of codes decides. Without a policy, only a failed
    /// connection is retried.
    pub(super) fn classification(self, method: Option<&dyn MethodOverrides>) -> Classification {
        let unsent = self.verdict.failure().is_some_and(|failure| failure.kind() == FailureKind::Connect);
        let verdict = match method {
            None => self.verdict,
            Some(method) if !method.has_policy() && unsent => self.verdict,
            Some(method) => method.verdict(self.code.map(Code::number)),
        };
        verdict.into()
    }
}

/// Returns the party whose fault the outcome is, for a response that a layer returns instead of an error.
pub fn fault<B>(response: &Response<B>) -> Option<Fault> {
    response.extensions().get::<Unanswered>()?.fault
}

/// Returns the classification of an error.
pub fn classify_error(error: &(dyn Error + 'static), method: Option<&dyn MethodOverrides>) -> Classification {
    Unanswered::of(error).classification(method)
}

/// Returns the code for an attempt, a call or a response that ended with this error. It is used for classification, for
/// metrics and for the caller.
pub fn code_of_error(error: &(dyn Error + 'static)) -> Code {
    match own_status(error).or_else(|| code_of_transport(error)) {
        Some(code) => code,
        None if time_limit(error).is_some() => Code::DeadlineExceeded,
        None if is_connecting(error) => Code::Unavailable,
        None => Code::Unknown,
    }
}

/// Returns the code for a connection error, or for a time limit of the inner client.
fn code_of_transport(error: &(dyn Error + 'static)) -> Option<Code> {
    if let Some(reason) = reattempt_http::reset_reason(error) {
        return Some(Code::from_reset(reason));
    }
    // A dead connection detected by keep-alive also looks like a timeout, but no time limit has passed.
    let limit = is_local_timeout(error) || reattempt_http::verdict_of_error(error).is_none();
    match verdict_of_error(error).failure()?.kind() {
        FailureKind::Timeout if limit => Some(Code::DeadlineExceeded),
        _ => Some(Code::Unavailable),
    }
}

/// Returns the code, the message and the mark of the response for this error, if a client would convert it to a
/// different status.
///
/// Returns `None` for a status, and for a timeout of this crate, whose source is a status. Also returns `None` for a
/// failed connection, which tonic recognises, and for an unknown error type.
pub(super) fn in_terms_of_grpc(error: &(dyn Error + 'static)) -> Option<(Code, Box<str>, Unanswered)> {
    if own_status(error).is_some() || time_limit(error).is_some() || is_connecting(error) {
        return None;
    }
    let code = code_of_transport(error)?;
    // The message of a status that was converted from an error contains irrelevant details.
    let mut below = causes(error).skip_while(|&error| is_status(error));
    Some((code, chain(below.next().unwrap_or(error)), Unanswered::of(error)))
}

/// Wraps the error in a status with the right code, if a client would convert it to a different status.
#[cfg(feature = "tonic")]
pub(super) fn explained(error: BoxError) -> BoxError {
    let Some((code, text, _)) = in_terms_of_grpc(&*error) else { return error };
    let code = tonic::Code::from(i32::from(code.number()));
    if error.downcast_ref::<tonic::Status>().is_some_and(|status| status.code() == code) {
        return error;
    }
    let mut status = tonic::Status::new(code, text);
    status.set_source(error.into());
    Box::new(status)
}

#[cfg(not(feature = "tonic"))]
pub(super) fn explained(error: BoxError) -> BoxError {
    error
}

/// Returns the error as a [`TimedOut`] of this crate, if it is one.
fn time_limit<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TimedOut> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// Returns the code of a status that was not converted from another error. A connector may fail with the status of
/// another service, which is not the call's.
#[cfg(feature = "tonic")]
fn own_status(error: &(dyn Error + 'static)) -> Option<Code> {
    if is_connecting(error) {
        return None;
    }
    let status = causes(error).find_map(|error| error.downcast_ref::<tonic::Status>())?;
    let number = i32::from(status.code());
    status.source().is_none().then(|| Code::from_number(number.unsigned_abs()))
}

#[cfg(not(feature = "tonic"))]
fn own_status(_: &(dyn Error + 'static)) -> Option<Code> {
    None
}

#[cfg(feature = "tonic")]
fn is_status(error: &(dyn Error + 'static)) -> bool {
    error.is::<tonic::Status>()
}

#[cfg(not(feature = "tonic"))]
fn is_status(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Returns `true` if tonic failed while connecting.
#[cfg(feature = "tonic")]
fn is_connecting(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<tonic::ConnectError>())
}

#[cfg(not(feature = "tonic"))]
fn is_connecting(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Returns `true` if the error comes from a timer for the call's own `grpc-timeout`. This is either the channel's timer
/// or the server's, which cancels the stream.
// TN-4
pub(super) fn is_timer(error: &(dyn Error + 'static)) -> bool {
    let reset = reattempt_http::reset_reason(error).map(Code::from_reset);
    reset == Some(Code::Cancelled) || is_local_timeout(error)
}

/// Returns `true` if the channel's own timer has expired.
#[cfg(feature = "tonic")]
fn is_local_timeout(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<tonic::TimeoutExpired>())
}

#[cfg(not(feature = "tonic"))]
fn is_local_timeout(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Returns `true` if a layer of this client created the response instead of sending the request.
pub(super) fn is_refused<B>(response: &Response<B>) -> bool {
    refusal(response).is_some()
}

/// Returns the refusal in a response's extensions.
pub(super) fn refusal<B>(response: &Response<B>) -> Option<Refused> {
    let refused = response.extensions().get().copied()?;
    response.headers().contains_key(GRPC_STATUS).then_some(refused)
}
