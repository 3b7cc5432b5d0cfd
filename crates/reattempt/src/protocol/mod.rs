//! Protocols: the bounds that generic code writes, and the types behind them. All traits are sealed.
//!
//! A policy holds a protocol: [`Http`], [`CloneRequest`] or
//! [`Operations`](crate::operation::Operations). The compiler's messages name the traits.
//!
//! | trait | content |
//! |---|---|
//! | [`Protocol`] | a protocol with its settings |
//! | [`RequestProtocol`], [`ReadRequest`] | answer every fact of a request, from one view of it |
//! | [`Replay`] | turns a request into its first attempt and a saved form, and that into further attempts |
//! | [`ClassifyOutcome`] | reads outcomes, and drains the responses that are refused |

use std::error::Error;

use reattempt_core::guard::Refused;
use reattempt_core::{Classification, StopReason};
use reattempt_replay::ReplayWatch;
use tokio::time::Instant;

use crate::call::clock;
use crate::call::deadline::Deadline;
#[doc(hidden)]
pub use crate::call::finish::Finish;
use crate::call::options::CallOptions;
pub(crate) use crate::call::outcome::Outcome;
pub use crate::call::protocol::Protocol;
pub(crate) use crate::call::protocol::sealed;
use crate::call::report::Report;
pub(crate) use crate::call::request_terms::AttemptNumber;
#[doc(hidden)]
pub use crate::call::request_terms::{NestedMarker, RequestTerms, RetrySafety};
use crate::call::request_view::RequestView;
use crate::call::timed_out::RefusedResponse;
use crate::error_mode::ErrorMode;

mod attempt;
mod cloned;
mod destination;
pub(crate) mod drain_body;
mod errors;
mod facts;
pub(crate) mod failed;
pub(crate) mod message;
mod origin;
pub(crate) mod proof;
mod protocol_setters;
mod setters;
pub(crate) mod settings;
pub(crate) mod watched;
pub(crate) mod witness;

#[cfg(feature = "reqwest")]
mod reqwest;

#[cfg(feature = "tower-http")]
pub(crate) mod tower_http;

#[cfg(feature = "reqwest")]
pub use self::reqwest::SavedReqwest;
#[doc(hidden)]
pub use attempt::{Added, AttemptKind, NextAttempt};
pub use cloned::{CloneRequest, SavedClone};
pub(crate) use drain_body::DrainBody;
pub(crate) use errors::{is_refused_here, not_sent, refusal_in, verdict_of_error};
pub use facts::{ReadRequest, RequestProtocol};
pub(crate) use facts::{attempt_terms, terms_of};
pub use message::SavedRequest;
#[doc(hidden)]
pub use origin::Origin;
pub(crate) use protocol_setters::{forward_setters, protocol_setters};
pub(crate) use setters::message_setters;
pub(crate) use settings::Http;
#[doc(hidden)]
pub use witness::Testimony;

impl sealed::Sealed for Http {}
impl<C> sealed::Sealed for CloneRequest<C> {}
impl<B> sealed::Sealed for SavedRequest<B> {}
impl<Request> sealed::Sealed for SavedClone<Request> {}
#[cfg(feature = "reqwest")]
impl sealed::Sealed for SavedReqwest {}

/// A protocol that can send a request of type `Request` several times.
#[diagnostic::on_unimplemented(
    message = "this retry policy cannot carry a request of type `{Request}`",
    note = "`RetryPolicy::http()` carries `http::Request<B>` where `B: http_body::Body<Data = Bytes> + Send`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt; a policy of another protocol carries the requests of that protocol; `RetryPolicy::cloned(…)` carries any `Clone` request"
)]
pub trait Replay<Request>: ReadRequest<Request> {
    /// The inner service's request type.
    type Attempt;
    /// The saved form of a request, for further attempts.
    type Saved: Saved;
    /// An attempt without its head.
    type Rest;

    /// Returns the reason for which a new request cannot be kept, if there is one.
    #[doc(hidden)]
    #[inline]
    fn cannot_save(&self, request: &Request) -> Option<StopReason> {
        let _ = request;
        None
    }

    /// Returns the only attempt of a request of which nothing is kept.
    #[doc(hidden)]
    fn pass(&self, request: Request, added: Added<'_>) -> Self::Attempt;

    /// Returns the first attempt, and writes the saved form to `kept`. It is large, so it is not returned by value.
    #[doc(hidden)]
    fn keep(&self, request: Request, added: Added<'_>, kept: &mut Option<Self::Saved>) -> Self::Attempt;

    /// Returns the `next` attempt, and leaves in `kept` what a further one needs. `None` if the saved form is not at
    /// hand.
    #[doc(hidden)]
    fn again(&self, kept: &mut Option<Self::Saved>, next: NextAttempt) -> Option<Self::Attempt>;

    /// Updates an attempt that was made some time ago and is sent now.
    #[doc(hidden)]
    fn refresh(&self, attempt: &mut Self::Attempt, deadline: Option<Deadline>) {
        let _ = (attempt, deadline);
    }

    /// Takes the head off an attempt, for a hook.
    #[doc(hidden)]
    fn split(&self, attempt: Self::Attempt) -> (Self::Head, Self::Rest);

    /// Puts the head back.
    #[doc(hidden)]
    fn join(&self, head: Self::Head, rest: Self::Rest) -> Self::Attempt;
}

/// The saved form of a request.
pub trait Saved: sealed::Sealed {
    /// Returns `true` if it can still be sent again, to its end.
    #[doc(hidden)]
    fn at_hand(&self) -> bool {
        true
    }

    /// Returns `true` if the caller's own body has failed.
    #[doc(hidden)]
    fn source_failed(&self) -> bool {
        false
    }

    /// Returns `true` if the body of the latest attempt is known to have been polled.
    #[doc(hidden)]
    fn was_polled(&self) -> bool {
        false
    }

    /// Returns a view of the head.
    #[doc(hidden)]
    fn view(&self) -> RequestView<'_> {
        RequestView::HEADLESS
    }

    /// Stops the readers of earlier attempts, which are over.
    #[doc(hidden)]
    fn supersede(&self) {}

    /// Returns a watch that shows if the next attempt can go on reading the body; `None` if nothing cuts it off. It
    /// must be called before the attempt is made, because the attempt takes the body.
    #[doc(hidden)]
    fn watch_next(&self) -> Option<ReplayWatch> {
        None
    }

    /// Returns such a watch for the first attempt, while the saved form is [at hand](Saved::at_hand).
    #[doc(hidden)]
    fn watch_first(&self) -> Option<ReplayWatch> {
        None
    }
}

/// Returns a view of the request for classifiers, if it was saved.
pub(crate) fn known(saved: Option<&impl Saved>) -> Option<RequestView<'_>> {
    saved?.view().known()
}

/// A protocol that classifies outcomes with a response of type `Response`.
#[diagnostic::on_unimplemented(
    message = "this retry policy cannot judge a response of type `{Response}`",
    note = "`RetryPolicy::http()` judges `http::Response<B>` where `B: http_body::Body`, and `reqwest::Response` of reqwest 0.13 with the feature `reqwest` of reattempt"
)]
pub trait ClassifyOutcome<Response>: Protocol {
    /// The future that reads a refused response to its end, so that its connection can be used again.
    type Drain: Future<Output = ()>;

    /// The caller's response: for HTTP the response itself.
    type Answer;

    /// Classifies the outcome of an attempt of a request with this saved form. A guard's refusal comes before any
    /// classifier.
    ///
    /// Only a verdict of [`NotProcessed`](reattempt_core::Verdict::NotProcessed) proves that the request was not
    /// processed, by a refusal too. An earlier hop may have been carried out before it.
    #[doc(hidden)]
    fn classify_outcome(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> Classification;

    /// Returns `true` if a fallback below has taken the place of the server's outcome. Another server may then have
    /// processed the request.
    #[doc(hidden)]
    fn is_from_fallback(outcome: Result<&Response, &(dyn Error + 'static)>) -> bool {
        let _ = outcome;
        false
    }

    /// Returns `true` if a layer on this side refused the attempt, or its last hop. It comes before any classifier.
    #[inline]
    fn is_refused(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> bool {
        outcome.err().is_some_and(is_refused_here)
    }

    /// Returns the refusal of a guard, if one refused the attempt.
    #[inline]
    fn refusal(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> Option<Refused> {
        refusal_in(outcome.err()?)
    }

    /// Returns the code of a response, if its head has one: for HTTP the status.
    #[doc(hidden)]
    fn code(response: &Response) -> Option<u16> {
        let _ = response;
        None
    }

    /// Begins to drain `response`, and returns its head if the protocol keeps it.
    #[doc(hidden)]
    fn drain(&self, response: Response) -> (Self::Drain, Option<RefusedResponse>);

    /// Puts the report into the response.
    #[doc(hidden)]
    fn attach(&self, response: &mut Response, report: Report);

    /// Returns `true` if the response ends the retries, and the end of its body still decides if the call succeeds.
    /// `succeeded` is `true` if the head was classified as a success.
    #[doc(hidden)]
    #[inline]
    fn is_open(&self, response: &Response, succeeded: bool) -> bool {
        let _ = (response, succeeded);
        false
    }

    /// Returns `true` if more of a response is to come although it is not open. Its deadline is kept all the same.
    #[doc(hidden)]
    #[inline]
    fn may_stall(&self, response: &Response) -> bool {
        let _ = response;
        false
    }

    /// Makes the caller's response of one whose end is not watched.
    #[doc(hidden)]
    fn answer(response: Response, open: bool) -> Self::Answer;

    /// Makes the caller's response of one that is open or may stall, with the accounting that is due at its end.
    #[doc(hidden)]
    fn watched(response: Response, finish: Finish) -> Self::Answer {
        drop(finish);
        Self::answer(response, true)
    }

    /// Makes the caller's response from the head of a dropped response, if the protocol needs no more than the head.
    #[doc(hidden)]
    fn refused(&self, head: &RefusedResponse) -> Option<Self::Answer> {
        let _ = head;
        None
    }

    /// Returns `true` if an outcome may come from a timer, below or at the server, that enforces the call's own
    /// deadline.
    #[doc(hidden)]
    fn is_timer(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> bool {
        let _ = outcome;
        false
    }

    /// Returns `true` if an outcome is the call's own deadline: it comes from a timer, and the deadline has passed or
    /// is about to pass. The call then ends as if the timer of this layer had been first (TN-4).
    #[doc(hidden)]
    fn is_own_deadline(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        deadline: Option<Instant>,
        started: Option<Instant>,
    ) -> bool {
        deadline.is_some_and(|deadline| {
            let now = Instant::now();
            clock::is_due(deadline, started.unwrap_or(now), now) && self.is_timer(outcome)
        })
    }

    /// Returns `true` if a server has sent the response. A layer below may have made it in place of one.
    #[doc(hidden)]
    #[inline]
    fn is_answered(&self, response: &Response) -> bool {
        let _ = response;
        true
    }

    /// Makes the caller's response in place of an error, if the protocol has an answer for it.
    #[doc(hidden)]
    fn unanswered(error: &(dyn Error + 'static), report: Option<Report>) -> Option<Self::Answer> {
        let _ = (error, report);
        None
    }

    /// Makes the caller's response when a deadline has passed, if the protocol has an answer for it. Only then is
    /// the report made.
    #[doc(hidden)]
    fn too_late(&self, text: &str, report: impl FnOnce() -> Option<Report>) -> Option<Self::Answer> {
        let _ = (text, report);
        None
    }
}

/// Turns an error into the end of a call: the protocol's response for it, if the mode has one, or else the error. The
/// protocol's own error is put in front if the type allows that.
#[cold]
pub(crate) fn unanswered<K, R, E, M>(error: M::Error, report: Option<Report>) -> Result<K::Answer, M::Error>
where
    K: ClassifyOutcome<R>,
    M: ErrorMode<E>,
{
    if !M::ANSWERS {
        return Err(M::explained(error, K::explained));
    }
    K::unanswered(M::view(&error), report).ok_or(error)
}
