//! The judgement of an error under gRPC: by where it came from, never by the status that a client would
//! make of it (rule TN-10).

use std::error::Error;

use reattempt_core::{Failure, FailureKind, Judgement, Verdict};
use reattempt_grpc::Code;

use crate::configured::OfMethod;
use crate::protocol::errors;

/// What an error means.
///
/// A connection that was not made, or that left the request undone, is UNAVAILABLE and known not to
/// have been sent: right to retry for every method. One that was lost is UNAVAILABLE too (rule OUT-2),
/// and retried where the method may be repeated. A stream that the server reset has the code that
/// gRPC's mapping gives its reason.
///
/// Where a service config speaks of the method, its list decides over the code; but without any policy
/// a connection that was not made is retried all the same.
pub(super) fn judge_error(error: &(dyn Error + 'static), method: Option<&OfMethod>) -> Judgement {
    match method {
        None => by_the_table(error),
        Some(method) => match by_the_table(error) {
            unsent if !method.has_policy() && is_unsent(&unsent) => unsent,
            _ => method.verdict(Some(code_of_error(error))).into(),
        },
    }
}

/// Whether there was no connection by which the request could have been sent.
fn is_unsent(judgement: &Judgement) -> bool {
    judgement.verdict.failure().is_some_and(|failure| failure.kind() == FailureKind::Connect)
}

fn by_the_table(error: &(dyn Error + 'static)) -> Judgement {
    if let Some(code) = own_status(error) {
        // A status that the service below made itself: an interceptor's, say.
        return reattempt_grpc::verdict_of_code(code).into();
    }
    let named = |failure: Failure| failure.with_code(Code::Unavailable.number());
    let verdict = match errors::verdict_of_error(error) {
        Verdict::Unprocessed(failure) => Verdict::Unprocessed(named(failure)),
        Verdict::Transient(failure) if failure.kind() == FailureKind::Network => {
            match reattempt_http::reset_reason(error).map(Code::from_reset) {
                None => Verdict::Transient(named(failure)),
                Some(code) => of_reset(code),
            }
        }
        verdict => verdict,
    };
    verdict.into()
}

/// The verdict on a stream that the server reset: it may have acted on it before.
fn of_reset(code: Code) -> Verdict {
    match reattempt_grpc::verdict_of_code(code) {
        Verdict::Unprocessed(failure) => Verdict::Transient(failure),
        verdict => verdict,
    }
}

/// The code of an answer that broke off with this error.
pub(crate) fn code_of_error(error: &(dyn Error + 'static)) -> Code {
    if let Some(code) = own_status(error) {
        return code;
    }
    match reattempt_http::reset_reason(error) {
        Some(reason) => Code::from_reset(reason),
        None => Code::Unavailable,
    }
}

/// The code of an attempt, or a call, that ended with this error in place of an answer. That may be a time
/// limit of the client's own, or an error that nobody knows.
#[cfg(feature = "opentelemetry")]
pub(crate) fn code_of_unanswered(error: &(dyn Error + 'static)) -> Code {
    let code = code_of_error(error);
    if code != Code::Unavailable || own_status(error).is_some() {
        return code;
    }
    // A connection that is found dead by its keep-alive has timed out, too, but no limit of the call has.
    let limit = is_local_timeout(error) || reattempt_http::verdict_of_error(error).is_none();
    match errors::verdict_of_error(error).failure().map(Failure::kind) {
        Some(FailureKind::Timeout) if limit => Code::DeadlineExceeded,
        Some(_) => Code::Unavailable,
        None => Code::Unknown,
    }
}

/// The code of a status that was not made of another error.
#[cfg(feature = "tonic")]
fn own_status(error: &(dyn Error + 'static)) -> Option<Code> {
    let status = errors::causes(error).find_map(|error| error.downcast_ref::<tonic::Status>())?;
    let number = i32::from(status.code());
    status.source().is_none().then(|| Code::from_number(number.unsigned_abs()))
}

#[cfg(not(feature = "tonic"))]
fn own_status(_: &(dyn Error + 'static)) -> Option<Code> {
    None
}

/// Whether it says that a timer of the client's own has run out, which it set by `grpc-timeout` (rule
/// TN-4).
#[cfg(feature = "tonic")]
pub(super) fn is_local_timeout(error: &(dyn Error + 'static)) -> bool {
    errors::causes(error).any(|error| error.is::<tonic::TimeoutExpired>())
}

#[cfg(not(feature = "tonic"))]
pub(super) fn is_local_timeout(_: &(dyn Error + 'static)) -> bool {
    false
}
