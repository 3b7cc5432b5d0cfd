//! The proof that a request was not processed, and the reasons to doubt it.
//!
//! A refusal, a failed connection, a 429 or a refused stream only concerns the last request that was sent for an
//! attempt. Before that, an earlier redirect hop, another copy or another server may have processed the request. All
//! classifications pass through [`doubted`].

use std::error::Error;

use http::Extensions;
use reattempt_core::guard::Refused;
use reattempt_core::{Classification, Evidence, Failure, FailureKind, Fault, Signs, Undone, Verdict};
use reattempt_http::undone;
use reattempt_replay::ReplayBody;

use super::Saved;
use super::errors::{is_refused_here, refusal_in};
use super::failed::{BackupFailed, FellBack};
use crate::call::body_verdict::BodyVerdict;
use crate::call::errors::causes;
use crate::call::timed_out::TimedOut;

/// The origin of a failed outcome, determined once for the retry decision and the report.
#[derive(Debug, Clone, Copy)]
pub struct OutcomeFacts {
    /// The guard's refusal, if a guard refused the attempt.
    pub refused: Option<Refused>,
    /// `true` if a layer of this client refused the attempt or its last hop.
    pub refused_here: bool,
    /// The stage at which an unprocessed attempt failed, or `None` if the attempt is not replaced.
    pub undone: Option<Undone>,
    /// `true` if the attempt is replaced whatever its verdict is, because the protocol's codes do not show the stage.
    pub under_any_code: bool,
    /// The party whose fault it is, if the outcome shows that it is not the server's.
    pub fault: Option<Fault>,
    /// `true` if the response comes from a server and not from an inner layer.
    pub responded: bool,
    /// `true` if the body of the response broke while it was read as part of the attempt.
    pub broke: bool,
    /// `true` if an inner fallback replaced the server's outcome. Another server may then have processed the request.
    pub from_fallback: bool,
}

impl OutcomeFacts {
    /// Returns the facts of an outcome that may show the stage at which the attempt failed.
    #[inline]
    pub(crate) fn of(outcome: Result<&Extensions, &(dyn Error + 'static)>) -> Self {
        let undone = outcome.err().and_then(undone);
        let body = outcome.ok().and_then(BodyVerdict::of);
        let broke = body.is_some_and(|body| body.failure().is_some());
        Self { undone, broke, from_fallback: is_from_fallback(outcome), ..Self::of_any(outcome.err()) }
    }

    /// Returns the facts under a verdict. If the verdict is that of a body that broke, no server has responded.
    ///
    /// There is no replacement if the verdict does not permit one. The connection may have belonged to
    /// a later hop, or a classifier has a verdict of its own.
    pub(crate) fn under(self, verdict: Verdict) -> Self {
        let proven = matches!(verdict, Verdict::NotProcessed(_));
        let holds = proven || self.under_any_code && self.undone != Some(Undone::NoConnection);
        // Only the failure of a lost connection has no code. Any other judges the head, which a server has sent.
        let lost = self.broke && verdict.failure().is_some_and(|failure| failure.code().is_none());
        Self { undone: self.undone.filter(|_| holds), responded: self.responded && !lost, ..self }
    }

    /// Returns the facts of any outcome, given its error.
    #[inline]
    pub(crate) fn of_any(error: Option<&(dyn Error + 'static)>) -> Self {
        Self {
            refused: error.and_then(refusal_in),
            refused_here: error.is_some_and(is_refused_here),
            undone: None,
            under_any_code: false,
            fault: error.and_then(fault_of_error),
            responded: error.is_none(),
            broke: false,
            from_fallback: false,
        }
    }

    /// Returns the evidence in an outcome with these facts.
    pub(crate) fn evidence(&self, verdict: Verdict) -> Evidence {
        Evidence::of(&Signs { undone: self.undone, fault: self.fault, ..Signs::new(verdict) })
    }
}

/// Returns the party whose fault an error is, if that is not the server.
pub fn fault_of_error(error: &(dyn Error + 'static)) -> Option<Fault> {
    let is_upload_pending = |error: &TimedOut| error.is_upload_pending();
    let uploading = causes(error).find_map(|error| error.downcast_ref()).is_some_and(is_upload_pending);
    if uploading { Some(Fault::Caller) } else { reattempt_http::fault_of_error(error) }
}

/// Returns the classification, but without a doubtful proof. `hops` returns `true` if an earlier hop may have processed
/// the request.
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

/// Returns `true` if an inner fallback replaced the original outcome.
pub fn is_from_fallback(outcome: Result<&Extensions, &(dyn Error + 'static)>) -> bool {
    match outcome {
        Ok(extensions) => extensions.get::<FellBack>().is_some(),
        Err(error) => causes(error).any(|error| error.is::<BackupFailed>()),
    }
}

/// Returns `true` if an attempt failed before it was sent, although its body was polled. A polled body means that the
/// request was sent, so the refusal or failed connection concerns a later hop or another copy.
pub(crate) fn is_of_later_hop(failure: &Failure, saved: Option<&impl Saved>) -> bool {
    matches!(failure.kind(), FailureKind::Connect | FailureKind::Other)
        && saved.and_then(Saved::body).is_some_and(ReplayBody::was_polled)
}

/// Returns `true` if the response comes from tower-http's `FollowRedirect`, which reqwest uses.
///
/// That layer adds its `RequestUri` to each response, even if it followed no redirect. Its value is not compared,
/// because a form that redirects to itself has the same URI at both hops.
pub(super) fn followed_by_service_of(extensions: &Extensions) -> bool {
    #[cfg(feature = "tower-http")]
    if extensions.get::<tower_http::follow_redirect::RequestUri>().is_some() {
        return true;
    }
    #[cfg(any(feature = "reqwest", feature = "reqwest-0-12"))]
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
    #[cfg(feature = "reqwest-0-12")]
    if causes(error).any(|error| error.is::<reqwest012::Error>()) {
        return true;
    }
    let _ = error;
    false
}
