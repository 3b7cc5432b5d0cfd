//! The verdict for an error from any client.

use std::error::Error;

use http::Extensions;
use reattempt_core::guard::Refused;
use reattempt_core::{Classification, Failure, FailureKind, Verdict};

use crate::call::body_verdict::BodyVerdict;
use crate::call::errors::{causes, chain};
use crate::call::timed_out::{TimeLimit, TimedOut};

/// Returns the verdict for an error of an HTTP client, or for a timeout of tower, tokio or this crate. If a layer of
/// this client refused the attempt, it was not sent. Unknown errors are not retried.
pub fn verdict_of_error(error: &(dyn Error + 'static)) -> Verdict {
    if is_refused_here(error) {
        return Verdict::NotProcessed(Failure::new(FailureKind::Other));
    }
    if let Some(verdict) = reattempt_http::verdict_of_error(error) {
        return verdict;
    }
    // A time limit set by an inner layer. An attempt that took too long may succeed next time, whereas a limit on the
    // whole call ends the call.
    if let Some(own) = causes(error).find_map(|error| error.downcast_ref::<TimedOut>()) {
        return match own.limit() {
            TimeLimit::Attempt => Verdict::Transient(Failure::new(FailureKind::Timeout)),
            TimeLimit::Deadline | TimeLimit::Elapsed => Verdict::Permanent,
        };
    }
    let elapsed = causes(error)
        .any(|error| error.is::<tower::timeout::error::Elapsed>() || error.is::<tokio::time::error::Elapsed>());
    match elapsed {
        true => Verdict::Transient(Failure::new(FailureKind::Timeout)),
        false => Verdict::Permanent,
    }
}

/// Returns `true` if a layer of this client refused the attempt or its last hop.
pub fn is_refused_here(error: &(dyn Error + 'static)) -> bool {
    causes(error).any(|error| error.is::<Refused>() || error.is::<tower::load_shed::error::Overloaded>())
}

/// Returns the classification of an attempt that a guard refused, unless there is [doubt](super::proof) about the
/// proof.
#[cold]
pub(crate) fn not_sent() -> Classification {
    Verdict::NotProcessed(Failure::new(FailureKind::Other)).into()
}

/// Returns the guard's refusal, if a guard refused the attempt.
pub fn refusal_in(error: &(dyn Error + 'static)) -> Option<Refused> {
    causes(error).find_map(|error| error.downcast_ref()).copied()
}

/// Returns the text of the error that ended an attempt or broke the body of its response.
pub(super) fn error_text(outcome: Result<&Extensions, &(dyn Error + 'static)>) -> Option<Box<str>> {
    match outcome {
        Ok(extensions) => BodyVerdict::of(extensions)?.error().map(Box::from),
        Err(error) => Some(chain(error)),
    }
}
