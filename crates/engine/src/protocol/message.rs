//! Support for the request and response types of the `http` crate.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Request, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use reattempt_core::{Classification, StopReason, Verdict};
use reattempt_http::{IDEMPOTENCY_KEY, is_repeatable, new_idempotency_key};
use reattempt_replay::{Drain, ReplayBody, ReplayLimits, SavedHead, SourceWatch};
use tower::BoxError;

use super::errors::error_text;
use super::{
    Added, AttemptKind, AttemptNumber, ClassifyOutcome, Http, NextAttempt, Origin, OutcomeFacts, Replay,
    RequestProtocol, Saved, proof, witness,
};
use crate::call::deadline::Deadline;
use crate::call::in_use;
use crate::call::options::CallOptions;
use crate::call::report::Report;
use crate::call::request_terms::Impatient;
use crate::call::request_view::RequestView;
use crate::call::timed_out::RefusedResponse;

/// The saved form of an `http::Request`: its head, and a reader at the start of its body.
pub struct SavedRequest<B> {
    #[doc(hidden)]
    pub head: SavedHead,
    #[doc(hidden)]
    pub body: ReplayBody<B>,
}

impl<B> fmt::Debug for SavedRequest<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedRequest").field("head", &self.head).finish_non_exhaustive()
    }
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> SavedRequest<B> {
    /// Saves a request with this head, and returns the first attempt's body, which is the first reader of `body`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn save(head: SavedHead, body: ReplayBody<B>, saved: &mut Option<Self>) -> ReplayBody<B> {
        *saved = Some(Self { head, body: body.try_clone().unwrap_or_else(ReplayBody::not_kept) });
        body
    }

    /// Returns the next attempt. Unless it is the last, `further` is set to the saved request for another one.
    pub(crate) fn again(self, next: NextAttempt, further: &mut Option<Self>) -> Request<ReplayBody<B>> {
        let Self { mut head, body } = self;
        body.forget_polls();
        let saves = !next.last || next.needs_head;
        let again = if next.last { None } else { body.try_clone() };
        let mut attempt = Request::new(body);
        if saves {
            head.copy_to(&mut attempt);
            *further = Some(Self { head, body: again.unwrap_or_else(ReplayBody::not_kept) });
        } else {
            head.move_to(&mut attempt);
        }
        witness::attend(attempt.extensions(), isize::from(saves), next.unproven);
        let extensions = attempt.extensions_mut();
        extensions.insert(AttemptNumber(next.number));
        if let Some(deadline) = next.deadline {
            extensions.insert(deadline);
        }
        if next.kind == AttemptKind::Hedge {
            extensions.insert(Impatient);
        }
        attempt
    }
}

impl<B> Saved for SavedRequest<B> {
    type Body = B;

    fn view(&self) -> RequestView<'_> {
        RequestView::of_saved(&self.head)
    }

    fn body(&self) -> Option<&ReplayBody<B>> {
        Some(&self.body)
    }

    fn body_mut(&mut self) -> Option<&mut ReplayBody<B>> {
        Some(&mut self.body)
    }
}

/// Makes the body of a request that is not saved observable.
#[cold]
fn watched<B>(attempt: Request<ReplayBody<B>>, source: &mut Option<SourceWatch>) -> Request<ReplayBody<B>>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let attempt = attempt.map(ReplayBody::watched);
    *source = attempt.body().watch_source();
    attempt
}

#[cold]
fn add_and_forward<B>(http: &Http, mut request: Request<B>, added: Added<'_>) -> Request<ReplayBody<B>>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    added.to_headers(request.headers_mut());
    http.write_deadline(request.headers_mut(), added.header_deadline());
    added.to_extensions(request.extensions_mut());
    request.map(ReplayBody::passthrough)
}

impl Http {
    /// Returns the limits on saving a request body, given the request's head.
    #[doc(hidden)]
    #[inline(always)]
    pub fn limits_of(&self, head: &Parts, body: &impl Body) -> Cow<'_, ReplayLimits> {
        if body.is_end_stream() {
            return Cow::Borrowed(&self.replay);
        }
        let destination = || self.destination_of(RequestView::of_parts(head));
        self.replay.for_call(&body.size_hint(), destination)
    }
}

impl Added<'_> {
    /// Returns `true` if the layer adds anything to the request.
    #[inline]
    pub(crate) fn is_any(self) -> bool {
        self.key || self.deadline.is_some() || self.marker.is_some()
    }

    /// Adds these parts to a message's head, and returns the saved head. The saved head lacks the deadline, which
    /// [`SavedRequest::again`] adds to each later attempt.
    #[inline(always)]
    pub(crate) fn saved_with(self, head: &mut Parts) -> SavedHead {
        let saved_head = Added { deadline: None, ..self };
        if saved_head.is_any() {
            saved_head.to_headers(&mut head.headers);
            saved_head.to_extensions(&mut head.extensions);
        }
        let saved_head = SavedHead::of_parts(head);
        witness::attend(&head.extensions, 1, false);
        self.deadline_to(&mut head.extensions);
        saved_head
    }

    #[inline]
    fn deadline_to(self, extensions: &mut Extensions) {
        if let Some(deadline) = self.deadline
            && !(self.implied && extensions.is_empty())
        {
            extensions.insert(deadline);
        }
    }

    /// Returns the deadline that is written to the protocol's header, if it has one.
    #[inline(always)]
    pub(crate) fn header_deadline(self) -> Option<Deadline> {
        self.deadline.filter(|_| self.in_header)
    }

    /// Adds the key to the headers of a message.
    pub(crate) fn to_headers(self, headers: &mut HeaderMap) {
        if self.key {
            headers.insert(IDEMPOTENCY_KEY, new_idempotency_key());
        }
    }

    /// Adds the deadline and the marker to the extensions of a message.
    pub(crate) fn to_extensions(self, extensions: &mut Extensions) {
        self.deadline_to(extensions);
        if let Some(marker) = self.marker {
            extensions.insert(marker.clone());
        }
    }
}

#[diagnostic::do_not_recommend]
impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Replay<Request<B>> for Http {
    type Attempt = Request<ReplayBody<B>>;
    type Saved = SavedRequest<B>;
    type Rest = ReplayBody<B>;

    #[inline]
    fn cannot_save(&self, request: &Request<B>) -> Option<StopReason> {
        // The body of a CONNECT request is the data of its tunnel.
        let tunnel = (request.method() == Method::CONNECT).then_some(StopReason::Forbidden);
        let is_kept = || !self.replay.keeps_nothing() || ReplayBody::is_upload_body(request.body());
        let unkept = || (!is_kept()).then_some(StopReason::BodyNotKept);
        tunnel.or_else(unkept).filter(|_| !request.body().is_end_stream())
    }

    fn forward(&self, request: Request<B>, added: Added<'_>) -> Self::Attempt {
        if added.is_any() {
            return add_and_forward(self, request, added);
        }
        let (head, body) = request.into_parts();
        Request::from_parts(head, ReplayBody::passthrough(body))
    }

    #[inline]
    fn forward_watched(
        &self,
        request: Request<B>,
        added: Added<'_>,
        source: &mut Option<SourceWatch>,
    ) -> Self::Attempt {
        let attempt = self.forward(request, added);
        match ReplayBody::<B>::is_always_in_memory() || !in_use::GUARDS.is_begun() {
            true => attempt,
            false => watched(attempt, source),
        }
    }

    // Inlined and destructured first, because each additional call or borrow copies the request.
    #[inline(always)]
    fn save(&self, request: Request<B>, added: Added<'_>, saved: &mut Option<Self::Saved>) -> Self::Attempt {
        let (mut head, body) = request.into_parts();
        let trusts_key = || self.trust_keys && is_repeatable(&head.method, &head.headers);
        let repeatable = added.key || head.method.is_idempotent() || trusts_key();
        let notes_polls = self.redirects.is_none() && (added.once || !repeatable);
        let limits = self.limits_of(&head, &body);
        let saved_head = added.saved_with(&mut head);
        self.write_deadline(&mut head.headers, added.header_deadline());
        let mut body = ReplayBody::new(body, &limits);
        if notes_polls {
            body = body.noting_polls();
        }
        Request::from_parts(head, SavedRequest::save(saved_head, body, saved))
    }

    fn again(&self, saved: Self::Saved, next: NextAttempt, further: &mut Option<Self::Saved>) -> Self::Attempt {
        let mut attempt = saved.again(next, further);
        self.write_deadline(attempt.headers_mut(), next.deadline);
        attempt
    }

    /// Writes the deadline's header anew. Resets the mark that the body was polled, because only the previous attempt
    /// may have polled it.
    fn refresh(&self, attempt: &mut Self::Attempt, deadline: Option<Deadline>) {
        attempt.body().forget_polls();
        self.write_deadline(attempt.headers_mut(), deadline);
    }

    fn split(&self, attempt: Self::Attempt) -> (Parts, Self::Rest) {
        attempt.into_parts()
    }

    fn join(&self, head: Parts, rest: Self::Rest) -> Self::Attempt {
        Request::from_parts(head, rest)
    }
}

impl<B> Origin<Request<ReplayBody<B>>> for Http {
    type Request = Request<B>;
}

impl<B: Body> ClassifyOutcome<Response<B>> for Http {
    type Drain = DrainBody<B>;
    type Answer = Response<B>;

    #[inline]
    fn classify_outcome(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> Classification {
        match outcome {
            Ok(response) if self.is_plain_success(response.status(), response.extensions(), options) => {
                Verdict::Success.into()
            }
            outcome => self.classify_message(outcome, options, saved),
        }
    }

    #[inline]
    fn facts(&self, outcome: Result<&Response<B>, &(dyn Error + 'static)>) -> OutcomeFacts {
        OutcomeFacts::of(outcome.map(Response::extensions))
    }

    #[inline]
    fn answer(response: Response<B>, _: bool) -> Response<B> {
        response
    }

    fn code(response: &Response<B>) -> Option<u16> {
        Some(response.status().as_u16())
    }

    fn error_text(outcome: Result<&Response<B>, &(dyn Error + 'static)>) -> Option<Box<str>> {
        error_text(outcome.map(Response::extensions))
    }

    fn drain(&self, response: Response<B>) -> (DrainBody<B>, Option<RefusedResponse>) {
        DrainBody::new(response, self.drain_limit)
    }

    fn attach(&self, response: &mut Response<B>, report: Report) {
        response.extensions_mut().insert(report);
    }
}

pin_project! {
    /// A future that reads a refused response to its end, up to [`drain_limit`](crate::Http::drain_limit) bytes.
    #[derive(Debug)]
    pub struct DrainBody<B> {
        #[pin]
        body: Drain<B>,
    }
}

impl<B: Body> DrainBody<B> {
    pub(crate) fn new(response: Response<B>, limit: u64) -> (Self, Option<RefusedResponse>) {
        let (head, body) = response.into_parts();
        let refused = RefusedResponse { status: head.status, headers: head.headers };
        (Self { body: Drain::new(body, limit) }, Some(refused))
    }
}

impl<B: Body> Future for DrainBody<B> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let _ = ready!(self.project().body.poll(cx));
        Poll::Ready(())
    }
}

impl Http {
    /// Classifies an outcome that is not a plain success under the default rules.
    #[inline(never)]
    fn classify_message<B>(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> Classification {
        let judged = match outcome {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers());
                self.classify_response(status, headers, response.extensions(), options, saved)
            }
            Err(error) => self.classify_error(error, options, saved),
        };
        let outcome = outcome.map(Response::extensions);
        judged.unless_doubted(outcome, |failure| match (self.redirects, outcome) {
            (Some(follows), _) => follows,
            (None, Ok(extensions)) => proof::followed_by_service_of(extensions),
            (None, Err(error)) => proof::is_of_later_hop(failure, saved) || proof::followed_by_client_of(error),
        })
    }
}
