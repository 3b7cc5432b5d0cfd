//! The classification of an error under gRPC. It depends on the origin of the error, never on the status that a client
//! would make of it (TN-10).

use std::error::Error;

use http::Response;
use reattempt_core::guard::Refused;
use reattempt_core::{Classification, Failure, FailureKind, Verdict};
use reattempt_grpc::{Code, GRPC_STATUS};
use tower::BoxError;

use crate::call::errors::{causes, chain};
use crate::call::method::MethodOverrides;
use crate::call::timed_out::{TimeLimit, TimedOut};
use crate::protocol::proof::is_from_fallback;
use crate::protocol::verdict_of_error;

/// The meaning of an outcome that no server has sent.
///
/// It is also a mark in the extensions of a response that a layer returns in place of an error. A layer around it
/// classifies the response like that error, not like a server's own response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// The code that is looked up in the list of a service config; `None` if no list decides.
    code: Option<Code>,
    /// The verdict without such a list.
    verdict: Verdict,
}

impl Unanswered {
    /// The call's own deadline has passed, which ends the call (DL-4).
    pub(crate) const LATE: Self = Self { code: None, verdict: Verdict::Permanent };

    /// Nothing was sent, because there is no service config.
    pub(crate) const NOT_SENT: Self = Self {
        code: Some(Code::Unavailable),
        verdict: Verdict::NotProcessed(Failure::new(FailureKind::Connect).with_code(Code::Unavailable.number())),
    };

    /// Nothing was sent, because a limit of the caller's own turned the call away. No list of a service config applies.
    pub(crate) const TURNED_AWAY: Self = Self {
        code: None,
        verdict: Verdict::NotProcessed(Failure::new(FailureKind::Other).with_code(Code::ResourceExhausted.number())),
    };

    /// An attempt took longer than it may.
    pub(crate) const TIMED_OUT: Self = Self {
        code: Some(Code::DeadlineExceeded),
        verdict: Verdict::Transient(Failure::new(FailureKind::Timeout).with_code(Code::DeadlineExceeded.number())),
    };

    /// Nothing was sent, because a guard refused the call. No list of a service config applies.
    pub(crate) const REFUSED: Self = Self {
        code: None,
        verdict: Verdict::NotProcessed(Failure::new(FailureKind::Other).with_code(Code::Unavailable.number())),
    };

    /// Returns the meaning of an error.
    ///
    /// | error | code | retried |
    /// |---|---|---|
    /// | no connection was made, or the request was not passed to it | UNAVAILABLE | for every method |
    /// | the connection was lost | UNAVAILABLE (OUT-2) | if the call may be repeated |
    /// | the server reset the stream | gRPC's code for the reason | by the code |
    /// | a time limit below, such as tonic's `Endpoint::timeout` | DEADLINE_EXCEEDED (TN-4) | if the call may be repeated |
    fn of(error: &(dyn Error + 'static)) -> Self {
        let limit = time_limit(error).map(TimedOut::limit);
        if matches!(limit, Some(TimeLimit::Deadline | TimeLimit::Elapsed)) {
            return Self::LATE;
        }
        let code = code_of_error(error);
        let named = |failure: Failure| failure.with_code(code.number());
        let verdict = if own_status(error).is_some() {
            // A status that the service below made itself, such as an interceptor's.
            reattempt_grpc::verdict_of_code(code)
        } else {
            match verdict_of_error(error) {
                Verdict::NotProcessed(failure) => Verdict::NotProcessed(named(failure)),
                Verdict::Transient(_) if reattempt_http::reset_reason(error).is_some() => of_reset(code),
                Verdict::Transient(failure) => Verdict::Transient(named(failure)),
                verdict => verdict,
            }
        };
        let verdict = match verdict {
            Verdict::NotProcessed(failure) if is_from_fallback(Err(error)) => Verdict::Transient(failure),
            verdict => verdict,
        };
        Self { code: Some(code), verdict }
    }

    /// Returns the classification of such an outcome.
    ///
    /// If a service config has a policy for the method, its list decides. Without a policy, a connection that was not
    /// made is retried all the same.
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

/// Returns the classification of an error.
pub(super) fn classify_error(error: &(dyn Error + 'static), method: Option<&dyn MethodOverrides>) -> Classification {
    Unanswered::of(error).classification(method)
}

/// Returns the verdict on a stream that the server reset. The server may have processed the request before.
fn of_reset(code: Code) -> Verdict {
    match reattempt_grpc::verdict_of_code(code) {
        Verdict::NotProcessed(failure) => Verdict::Transient(failure),
        verdict => verdict,
    }
}

/// Returns the code of an attempt, a call or a response that ended with this error, for its classification, its caller
/// and its metrics.
pub(crate) fn code_of_error(error: &(dyn Error + 'static)) -> Code {
    match own_status(error).or_else(|| code_of_transport(error)) {
        Some(code) => code,
        None if time_limit(error).is_some() => Code::DeadlineExceeded,
        None if is_connecting(error) => Code::Unavailable,
        None => Code::Unknown,
    }
}

/// Returns the code of a connection's error or of a time limit below.
fn code_of_transport(error: &(dyn Error + 'static)) -> Option<Code> {
    if let Some(reason) = reattempt_http::reset_reason(error) {
        return Some(Code::from_reset(reason));
    }
    // A connection that is found dead by its keep-alive has timed out, too, but no limit has.
    let limit = is_local_timeout(error) || reattempt_http::verdict_of_error(error).is_none();
    match verdict_of_error(error).failure()?.kind() {
        FailureKind::Timeout if limit => Some(Code::DeadlineExceeded),
        _ => Some(Code::Unavailable),
    }
}

/// Returns the code, the text and the mark of the response for this error, if a client would make another status of it.
///
/// Returns `None` for a status, and for a time limit of this crate, whose source is a status. Returns `None` for a
/// connection that was not made, which tonic recognises, and for an error of an unknown type.
pub(super) fn in_terms_of_grpc(error: &(dyn Error + 'static)) -> Option<(Code, Box<str>, Unanswered)> {
    if own_status(error).is_some() || time_limit(error).is_some() || is_connecting(error) {
        return None;
    }
    let code = code_of_transport(error)?;
    // The texts of statuses that were made of an error name much else.
    let mut below = causes(error).skip_while(|&error| is_status(error));
    Some((code, chain(below.next().unwrap_or(error)), Unanswered::of(error)))
}

/// Returns the error with a status of this code in front of it, if a client would make another status of it.
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

/// Returns the time limit of a layer of this crate, if the error is one.
fn time_limit<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TimedOut> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// Returns the code of a status that was not made of another error.
#[cfg(feature = "tonic")]
fn own_status(error: &(dyn Error + 'static)) -> Option<Code> {
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

/// Returns `true` if tonic was about to make a connection.
#[cfg(feature = "tonic")]
fn is_connecting(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<tonic::ConnectError>())
}

#[cfg(not(feature = "tonic"))]
fn is_connecting(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Returns `true` if the error comes from a timer that enforces the call's own `grpc-timeout`. It is the channel's
/// timer, or that of a server, which cancels the stream (TN-4).
pub(super) fn is_timer(error: &(dyn Error + 'static)) -> bool {
    let reset = reattempt_http::reset_reason(error).map(Code::from_reset);
    reset == Some(Code::Cancelled) || is_local_timeout(error)
}

/// Returns `true` if the channel's own timer has run out.
#[cfg(feature = "tonic")]
fn is_local_timeout(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<tonic::TimeoutExpired>())
}

#[cfg(not(feature = "tonic"))]
fn is_local_timeout(_: &(dyn Error + 'static)) -> bool {
    false
}

/// Returns `true` if a layer on this side made the response in place of sending the request.
pub(super) fn is_refused<B>(response: &Response<B>) -> bool {
    refusal(response).is_some()
}

/// Returns the refusal that a response stands for.
pub(super) fn refusal<B>(response: &Response<B>) -> Option<Refused> {
    let refused = response.extensions().get().copied()?;
    response.headers().contains_key(GRPC_STATUS).then_some(refused)
}
