//! Protocols: the traits to use as bounds in generic code, and their types. All traits are sealed.
//!
//! A policy contains a protocol: [`Http`], [`CloneRequest`] or [`Operations`][operations]. Compiler
//! messages mention these traits:
//!
//! | trait | content |
//! |---|---|
//! | [`Protocol`] | a protocol with its settings |
//! | [`RequestProtocol`], [`ReadRequest`] | read all facts about a request from one view |
//! | [`Replay`] | turns a request into its first attempt and a saved form for later attempts |
//! | [`ClassifyOutcome`] | classifies outcomes and drains refused responses |
//!
//! [operations]: https://docs.rs/reattempt/latest/reattempt/operation/struct.Operations.html

use std::error::Error;

use reattempt_core::{Classification, StopReason};
use reattempt_replay::{ReplayBody, SourceWatch};

use crate::call::clock::Instant;
use crate::call::deadline::Deadline;
use crate::call::errors::chain;
#[doc(hidden)]
pub use crate::call::finish::Finish;
use crate::call::in_use;
#[doc(hidden)]
pub use crate::call::nesting::NestedMarker;
use crate::call::options::CallOptions;
pub(crate) use crate::call::outcome::Outcome;
pub use crate::call::protocol::Protocol;
pub(crate) use crate::call::protocol::sealed;
use crate::call::report::Report;
pub(crate) use crate::call::request_terms::AttemptNumber;
#[doc(hidden)]
pub use crate::call::request_terms::{RequestTerms, RetrySafety};
use crate::call::request_view::RequestView;
use crate::call::timed_out::RefusedResponse;
use crate::error_mode::ErrorMode;

pub(crate) mod attempt;
mod call_start;
mod call_types;
mod cloned;
mod destination;
pub(crate) mod errors;
pub(crate) mod facts;
pub(crate) mod failed;
pub(crate) mod fallback_body;
pub(crate) mod message;
pub(crate) mod named_destination;
pub(crate) mod origin;
pub(crate) mod proof;
pub(crate) mod protocol_setters;
pub(crate) mod services;
mod setters;
pub(crate) mod settings;
pub(crate) mod watched;
pub(crate) mod witness;

#[cfg(feature = "reqwest")]
pub(crate) mod reqwest;

#[cfg(feature = "tower-http")]
pub(crate) mod tower_http;

#[cfg(feature = "reqwest")]
pub use self::reqwest::SavedReqwest;
#[doc(hidden)]
pub use attempt::{Added, AttemptKind, NextAttempt};
pub(crate) use call_start::CallStart;
pub(crate) use call_types::{AnswerOf, CallTypes, ResultOf, Types};
pub use cloned::{CloneRequest, SavedClone};
pub(crate) use errors::{not_sent, refusal_in, verdict_of_error};
pub(crate) use facts::terms_of;
pub use facts::{ReadRequest, RequestProtocol};
pub(crate) use message::DrainBody;
pub use message::SavedRequest;
pub use named_destination::{AsDestination, Destination};
#[doc(hidden)]
pub use origin::Origin;
#[doc(hidden)]
pub use proof::OutcomeFacts;
pub(crate) use protocol_setters::protocol_setters;
pub(crate) use setters::message_setters;
pub(crate) use settings::Http;

impl sealed::Sealed for Http {}
impl<B> sealed::Sealed for http::Request<B> {}
impl<B> sealed::Sealed for http::Response<B> {}
impl<C> sealed::Sealed for CloneRequest<C> {}
impl<B> sealed::Sealed for SavedRequest<B> {}
impl<Request> sealed::Sealed for SavedClone<Request> {}
#[cfg(feature = "reqwest")]
impl sealed::Sealed for SavedReqwest {}
#[cfg(feature = "reqwest")]
impl sealed::Sealed for ::reqwest::Response {}

/// A protocol that can send a request of type `Request` more than once.
#[diagnostic::on_unimplemented(
    message = "this retry policy cannot carry a request of type `{Request}`",
    note = "`RetryPolicy::http()` carries `http::Request<B>` where `B: http_body::Body<Data = Bytes> + Send`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt; a policy of another protocol carries the requests of that protocol; `RetryPolicy::cloned(…)` carries any `Clone` request",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait Replay<Request>: ReadRequest<Request> {
    /// The inner service's request type.
    type Attempt;
    /// The saved form of a request, for later attempts.
    type Saved: Saved;
    /// The part of an attempt without its head.
    type Rest;

    /// Returns the reason why a new request cannot be saved, if any.
    #[doc(hidden)]
    #[inline]
    fn cannot_save(&self, request: &Request) -> Option<StopReason> {
        let _ = request;
        None
    }

    /// Returns the only attempt of a request that is not saved.
    #[doc(hidden)]
    fn forward(&self, request: Request, added: Added<'_>) -> Self::Attempt;

    /// Works like [`forward`](Self::forward), and sets `source` to a watch on the caller's body, if that is streamed
    /// and a guard may need it.
    #[doc(hidden)]
    #[inline]
    fn forward_watched(&self, request: Request, added: Added<'_>, source: &mut Option<SourceWatch>) -> Self::Attempt {
        let _ = source;
        self.forward(request, added)
    }

    /// Returns the first attempt. The saved form is written to `saved`, because it is too large to return by value.
    #[doc(hidden)]
    fn save(&self, request: Request, added: Added<'_>, saved: &mut Option<Self::Saved>) -> Self::Attempt;

    /// Returns the `next` attempt, and sets `further` to the saved form for later attempts. The saved form must be
    /// [available](Saved::at_hand).
    #[doc(hidden)]
    fn again(&self, saved: Self::Saved, next: NextAttempt, further: &mut Option<Self::Saved>) -> Self::Attempt;

    /// Updates an attempt that was created earlier and is about to be sent.
    #[doc(hidden)]
    fn refresh(&self, attempt: &mut Self::Attempt, deadline: Option<Deadline>) {
        let _ = (attempt, deadline);
    }

    /// Splits an attempt into its head, for a hook, and the rest.
    #[doc(hidden)]
    fn split(&self, attempt: Self::Attempt) -> (Self::Head, Self::Rest);

    /// Joins a head and the rest into an attempt.
    #[doc(hidden)]
    fn join(&self, head: Self::Head, rest: Self::Rest) -> Self::Attempt;
}

/// The saved form of a request.
pub trait Saved: sealed::Sealed {
    /// The caller's body.
    type Body;

    /// Returns a view of the head.
    #[doc(hidden)]
    fn view(&self) -> RequestView<'_> {
        RequestView::HEADLESS
    }

    /// Returns the saved body, from which the next attempt reads, or `None` if it is part of the request.
    #[doc(hidden)]
    fn body(&self) -> Option<&ReplayBody<Self::Body>> {
        None
    }

    /// Returns the saved body for opening it, or `None` if it is part of the request.
    #[doc(hidden)]
    fn body_mut(&mut self) -> Option<&mut ReplayBody<Self::Body>> {
        None
    }

    /// Returns a watch on the caller's body, if that is streamed and a guard may need it.
    #[doc(hidden)]
    #[inline]
    fn watch_source(&self) -> Option<SourceWatch> {
        // Asked first, because the body's first watch allocates.
        if in_use::GUARDS.is_begun() { self.body()?.watch_source() } else { None }
    }

    /// Returns `true` if the complete request can still be sent again.
    #[doc(hidden)]
    fn at_hand(&self) -> bool {
        let replayable = |body: &ReplayBody<_>| body.is_replayable() && !body.source_failed();
        self.view().is_restorable() && self.body().is_none_or(replayable)
    }
}

/// A protocol that classifies outcomes with a response of type `Response`.
#[diagnostic::on_unimplemented(
    message = "this retry policy cannot judge a response of type `{Response}`",
    note = "`RetryPolicy::http()` judges `http::Response<B>` where `B: http_body::Body`, and `reqwest::Response` of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
#[expect(unused_variables, reason = "a default ignores its arguments")]
pub trait ClassifyOutcome<Response>: Protocol {
    /// The future that reads a refused response to its end, so that its connection can be reused.
    type Drain: Future<Output = ()>;

    /// The response type for the caller: for HTTP, the response type itself.
    type Answer;

    /// Classifies the outcome of an attempt, given the saved form of its request. A guard's refusal takes precedence
    /// over all classifiers.
    ///
    /// Only the verdict [`NotProcessed`](reattempt_core::Verdict::NotProcessed) is proof that the request was not
    /// processed. A refusal alone is not, because an earlier hop may have been processed.
    #[doc(hidden)]
    fn classify_outcome(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> Classification;

    /// Returns the facts about an outcome that is not a success. They take precedence over all classifiers.
    #[doc(hidden)]
    fn facts(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> OutcomeFacts;

    /// Returns the code in the response head, if any. For HTTP, it is the status.
    #[doc(hidden)]
    fn code(response: &Response) -> Option<u16> {
        None
    }

    /// Returns the text of the error that ended an attempt, without credentials.
    #[doc(hidden)]
    fn error_text(outcome: Result<&Response, &(dyn Error + 'static)>) -> Option<Box<str>> {
        outcome.err().map(chain)
    }

    /// Starts to drain `response`, and returns its head if the protocol keeps it.
    #[doc(hidden)]
    fn drain(&self, response: Response) -> (Self::Drain, Option<RefusedResponse>);

    /// Adds the report to the response.
    #[doc(hidden)]
    fn attach(&self, response: &mut Response, report: Report);

    /// Returns `true` if this response is final and the end of its body decides whether the call succeeds. `succeeded`
    /// is `true` if the head was classified as a success.
    #[doc(hidden)]
    #[inline]
    fn is_open(&self, response: &Response, succeeded: bool) -> bool {
        false
    }

    /// Returns `true` if the deadline applies to the rest of a response that is not open.
    #[doc(hidden)]
    #[inline]
    fn may_stall(&self, response: &Response) -> bool {
        false
    }

    /// Converts a response whose end is not watched to the caller's type.
    #[doc(hidden)]
    fn answer(response: Response, open: bool) -> Self::Answer;

    /// Converts a response that is open or may stall to the caller's type. `finish` does the accounting at its end.
    #[doc(hidden)]
    fn watched(response: Response, finish: Finish) -> Self::Answer {
        drop(finish);
        Self::answer(response, true)
    }

    /// Creates the caller's response from the head of a dropped response, if the protocol needs only the head.
    #[doc(hidden)]
    fn refused(&self, head: &RefusedResponse) -> Option<Self::Answer> {
        None
    }

    /// Returns `true` if the outcome may come from a timer for the call's own deadline, in an inner layer or at the
    /// server.
    #[doc(hidden)]
    fn is_timer(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> bool {
        false
    }

    /// Creates a response for an error, if the protocol can represent it as one.
    #[doc(hidden)]
    fn unanswered(error: &(dyn Error + 'static), report: Option<Report>) -> Option<Self::Answer> {
        None
    }

    /// Creates a response for a passed deadline, if the protocol has one. Otherwise, the report is not created.
    #[doc(hidden)]
    fn too_late(&self, text: &str, report: impl FnOnce() -> Option<Report>) -> Option<Self::Answer> {
        None
    }
}

/// Returns `true` if the outcome is the call's own deadline: a timer caused it, and the deadline has passed or is about
/// to pass. The call then ends as if this layer's timer had expired first.
// TN-4
pub(crate) fn is_own_deadline<P: ClassifyOutcome<Response>, Response>(
    protocol: &P,
    outcome: Result<&Response, &(dyn Error + 'static)>,
    deadline: Option<Instant>,
    started: Option<Instant>,
) -> bool {
    // Few outcomes come from a timer, so the clock is not read for the others.
    deadline.filter(|_| protocol.is_timer(outcome)).is_some_and(|deadline| {
        let now = Instant::now();
        deadline.is_due(started.unwrap_or(now), now)
    })
}

/// Converts an error to the result of a call: the protocol's response if this mode uses one, otherwise the error. If
/// the error type allows it, the protocol's own error wraps the error.
#[cold]
pub(crate) fn unanswered<P, R, E, Mode>(error: Mode::Error, report: Option<Report>) -> Result<P::Answer, Mode::Error>
where
    P: ClassifyOutcome<R>,
    Mode: ErrorMode<E>,
{
    if !Mode::ANSWERS {
        return Err(Mode::explained(error, P::explained));
    }
    P::unanswered(Mode::view(&error), report).ok_or(error)
}
