//! The proof that a request was not processed, and the signs that speak against it.
//!
//! A refusal, a failed connection, a 429 or a refused stream concerns one attempt, and the last thing that was sent for
//! it. An earlier hop of a redirect, another copy of the request or another server may have processed it. All
//! classifications pass through [`doubted`].

use std::error::Error;

use http::Extensions;
use reattempt_core::{Classification, Failure, FailureKind, Verdict};

use super::Saved;
use super::failed::{BackupFailed, FellBack};
use crate::call::errors::causes;

/// Returns the classification, without a proof that something speaks against. `hops` returns `true` if an earlier hop
/// may have processed the request.
#[inline]
pub(crate) fn doubted(
    classification: Classification,
    outcome: Result<&Extensions, &(dyn Error + 'static)>,
    hops: impl FnOnce(&Failure) -> bool,
) -> Classification {
    let Verdict::NotProcessed(failure) = classification.verdict else { return classification };
    let failure = if is_from_fallback(outcome) {
        failure
    } else if hops(&failure) {
        failure.after_hop()
    } else {
        return classification;
    };
    Verdict::Transient(failure).with_hint(classification.hint)
}

/// Returns `true` if a fallback below has taken the place of the call's own outcome.
pub(crate) fn is_from_fallback(outcome: Result<&Extensions, &(dyn Error + 'static)>) -> bool {
    match outcome {
        Ok(extensions) => extensions.get::<FellBack>().is_some(),
        Err(error) => causes(error).any(|error| error.is::<BackupFailed>()),
    }
}

/// Returns `true` if an attempt that failed before it was sent has a body that was polled. A body that was polled was
/// sent, so it was a later hop, or another copy, that was refused or found no connection.
pub(crate) fn is_of_later_hop(failure: &Failure, saved: Option<&impl Saved>) -> bool {
    matches!(failure.kind(), FailureKind::Connect | FailureKind::Other) && saved.is_some_and(Saved::was_polled)
}

/// Returns `true` if the response comes from tower-http's `FollowRedirect`, which reqwest uses.
///
/// That layer leaves its `RequestUri` in each response, even if it followed no redirect. Its value is not compared,
/// because a form that redirects to itself has the same URI at both hops.
pub(super) fn followed_by_service_of(extensions: &Extensions) -> bool {
    #[cfg(feature = "tower-http")]
    if extensions.get::<tower_http::follow_redirect::RequestUri>().is_some() {
        return true;
    }
    #[cfg(feature = "reqwest")]
    if extensions.get::<tower_http_of_reqwest::follow_redirect::RequestUri>().is_some() {
        return true;
    }
    let _ = extensions;
    false
}

/// Returns `true` if the error comes from a reqwest client.
pub(super) fn followed_by_client_of(error: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "reqwest")]
    if causes(error).any(|error| error.is::<reqwest::Error>()) {
        return true;
    }
    let _ = error;
    false
}
