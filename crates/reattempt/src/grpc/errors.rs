//! The classification of an error under gRPC: by where it came from, never by the status that a client would
//! make of it (rule TN-10).

use std::error::Error;

use http::Response;
use reattempt_core::guard::Refused;
use reattempt_core::{Classification, Failure, FailureKind, Verdict};
use reattempt_grpc::{Code, GRPC_STATUS};
use tower::BoxError;

use crate::call::errors::{causes, chain};
use crate::call::method::MethodOverrides;
use crate::call::pace_refused::PaceRefused;
use crate::call::timed_out::{TimeLimit, TimedOut};
use crate::protocol::verdict_of_error;

/// The meaning of an outcome that no server has sent.
///
/// It is also the mark of an answer that a layer gives in place of one, among the response's extensions: a
/// layer around it judges the answer like the error that it stands for, not like a server's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unanswered {
    /// The code by which the list of a service config is asked; none where no list decides.
    code: Option<Code>,
    /// The verdict where there is no such list.
    verdict: Verdict,
}

impl Unanswered {
    /// The call's own deadline has passed, which ends the call (rule DL-4).
    pub(crate) const LATE: Self = Self { code: None, verdict: Verdict::Permanent };

    /// Nothing was sent, for there is no service config.
    pub(crate) const NOT_SENT: Self = Self {
        code: Some(Code::Unavailable),
        verdict: Verdict::Unprocessed(
            Failure::new(FailureKind::Connect).with_code(Code::Unavailable.number()),
        ),
    };

    /// Nothing was sent, for a limit of the caller's own turned the call away. No service config's list
    /// is about such limits.
    pub(crate) const TURNED_AWAY: Self = Self {
        code: None,
        verdict: Verdict::Unprocessed(
            Failure::new(FailureKind::Other).with_code(Code::ResourceExhausted.number()),
        ),
    };

    /// An attempt took longer than it may.
    pub(crate) const TIMED_OUT: Self = Self {
        code: Some(Code::DeadlineExceeded),
        verdict: Verdict::Transient(
            Failure::new(FailureKind::Timeout).with_code(Code::DeadlineExceeded.number()),
        ),
    };

    /// Nothing was sent, for a guard refused the call. No service config's list is about guards.
    pub(crate) const REFUSED: Self = Self {
        code: None,
        verdict: Verdict::Unprocessed(
            Failure::new(FailureKind::Other).with_code(Code::Unavailable.number()),
        ),
    };

    /// The meaning of an error.
    ///
    /// A connection that was not made, or that left the request undone, is UNAVAILABLE and known not to
    /// have been sent: right to retry for every method. One that was lost is UNAVAILABLE too (rule OUT-2),
    /// and retried where the method may be repeated. A stream that the server reset has the code that
    /// gRPC's mapping gives its reason. A time limit below, such as that of tonic's `Endpoint::timeout`, is
    /// DEADLINE_EXCEEDED (rule TN-4).
    fn of(error: &(dyn Error + 'static)) -> Self {
        let limit = time_limit(error).map(TimedOut::limit);
        if matches!(limit, Some(TimeLimit::Deadline | TimeLimit::Elapsed)) {
            return Self::LATE;
        }
        let code = code_of_error(error);
        let named = |failure: Failure| failure.with_code(code.number());
        let verdict = if own_status(error).is_some() {
            // A status that the service below made itself: an interceptor's, say.
            reattempt_grpc::verdict_of_code(code)
        } else {
            match verdict_of_error(error) {
                Verdict::Unprocessed(failure) => Verdict::Unprocessed(named(failure)),
                Verdict::Transient(_) if reattempt_http::reset_reason(error).is_some() => {
                    of_reset(code)
                }
                Verdict::Transient(failure) => Verdict::Transient(named(failure)),
                verdict => verdict,
            }
        };
        Self { code: Some(code), verdict }
    }

    /// The classification of such an outcome.
    ///
    /// Where a service config speaks of the method, its list decides over the code; but without any policy
    /// a connection that was not made is retried all the same.
    pub(super) fn classification(self, method: Option<&dyn MethodOverrides>) -> Classification {
        let unsent =
            self.verdict.failure().is_some_and(|failure| failure.kind() == FailureKind::Connect);
        let verdict = match method {
            None => self.verdict,
            Some(method) if !method.has_policy() && unsent => self.verdict,
            Some(method) => method.verdict(self.code.map(Code::number)),
        };
        verdict.into()
    }
}

/// The classification of an error.
pub(super) fn judge_error(
    error: &(dyn Error + 'static),
    method: Option<&dyn MethodOverrides>,
) -> Classification {
    Unanswered::of(error).classification(method)
}

/// The verdict on a stream that the server reset: it may have acted on it before.
fn of_reset(code: Code) -> Verdict {
    match reattempt_grpc::verdict_of_code(code) {
        Verdict::Unprocessed(failure) => Verdict::Transient(failure),
        verdict => verdict,
    }
}

/// Returns the code of an attempt, a call or an answer that ended with this error: for its classification, for
/// its caller and for what is measured.
pub(crate) fn code_of_error(error: &(dyn Error + 'static)) -> Code {
    match own_status(error).or_else(|| code_of_transport(error)) {
        Some(code) => code,
        None if time_limit(error).is_some() => Code::DeadlineExceeded,
        None if is_connecting(error) => Code::Unavailable,
        None => Code::Unknown,
    }
}

/// The code of an error that is neither a status nor the caller's own: of a connection, or of a time limit
/// below.
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

/// Returns what the caller gets for this error where a client would make another status of it: the code,
/// the text, and the mark for the answer.
///
/// Other errors stay as they are: a status, a time limit of a layer of ours, which has one behind it, a
/// connection that was not made, of which tonic knows what it is, and what is of an unknown type.
pub(super) fn in_terms_of_grpc(
    error: &(dyn Error + 'static),
) -> Option<(Code, Box<str>, Unanswered)> {
    if own_status(error).is_some() || time_limit(error).is_some() || is_connecting(error) {
        return None;
    }
    let code = code_of_transport(error)?;
    // The texts of statuses that were made of an error name much else.
    let mut below = causes(error).skip_while(|&error| is_status(error));
    Some((code, chain(below.next().unwrap_or(error)), Unanswered::of(error)))
}

/// The error with a status of this code in front of it, if a client would make another of it.
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

/// A time limit of a layer of ours.
fn time_limit<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a TimedOut> {
    causes(error).find_map(|error| error.downcast_ref())
}

/// The code of a status that was not made of another error.
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

/// Returns `true` if it comes of a timer that runs by the call's own `grpc-timeout`: the channel's (rule TN-4), or
/// the server's, which has cancelled the stream.
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
    let extensions = response.extensions();
    (extensions.get::<Refused>().is_some() || extensions.get::<PaceRefused>().is_some())
        && response.headers().contains_key(GRPC_STATUS)
}

/// Returns the refusal that a response stands for.
pub(super) fn refusal<B>(response: &Response<B>) -> Option<Refused> {
    let refused = response.extensions().get().copied()?;
    response.headers().contains_key(GRPC_STATUS).then_some(refused)
}
