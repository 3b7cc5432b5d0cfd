//! The future of an attempt whose response body is read ahead.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Method, Response};
use http_body::Body;
use pin_project_lite::pin_project;
use reattempt_core::{FailureKind, Fault};
use reattempt_engine::classify::Outcome;
use reattempt_engine::wall::{BodyVerdict, chain, clock, fault_of_error, verdict_of_error};
use reattempt_http::view_error;
use reattempt_replay::ReplayLimits;
use tokio::time::Sleep;

use super::PeekedBody;
use super::body::Step;
use super::message::PeekableResponse;
use super::settings::{MOST_FRAMES, Plan, Settings, is_identity};

pin_project! {
    /// The future of an attempt whose response body is read ahead.
    ///
    /// # Cancel safety
    /// Dropping the future drops the response that it holds, and releases its memory.
    #[project = Projection]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, R: PeekableResponse> {
        #[pin]
        attempt: F,
        terms: Terms,
        // The response that is being read.
        reading: Option<Reading<R::Body>>,
        #[pin]
        sleep: Option<Sleep>,
    }
}

/// The facts about the request that decide how its response is read.
pub(crate) struct Terms {
    pub(crate) settings: Arc<Settings>,
    pub(crate) method: Method,
    pub(crate) streamed: bool,
    /// The limits of the request's destination, once much of the memory is used.
    pub(crate) limits: Option<ReplayLimits>,
}

/// A response that is being read.
struct Reading<B: Body> {
    response: Response<PeekedBody<B>>,
    plan: Plan,
}

/// The reason why a body is not read further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    Whole,
    Broke,
    Beyond,
}

impl<F, R: PeekableResponse> ResponseFuture<F, R> {
    pub(crate) fn new(attempt: F, terms: Terms) -> Self {
        Self { attempt, terms, reading: None, sleep: None }
    }
}

impl<F, R, E> Future for ResponseFuture<F, R>
where
    F: Future<Output = Result<R, E>>,
    R: PeekableResponse,
{
    type Output = Result<R::Peeked, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if this.reading.is_none() {
            let response = ready!(this.attempt.as_mut().poll(cx))?;
            let request = (&this.terms.method, this.terms.streamed);
            let Some(plan) = this.terms.settings.plan(request, response.head(), &response.length()) else {
                return Poll::Ready(Ok(response.unread()));
            };
            *this.reading = Some(Reading { response: response.into_message().map(PeekedBody::unread), plan });
        }
        let stop = ready!(this.poll_body(cx));
        // The response was stored above, unless the future is polled after its end.
        let Some(Reading { mut response, .. }) = this.reading.take() else { return Poll::Pending };
        let verdict = match stop {
            Stop::Whole => this.terms.judge(&response),
            Stop::Broke => response.body().error().and_then(verdict_of_break::<R::Error>),
            Stop::Beyond => None,
        };
        if let Some(verdict) = verdict {
            response.extensions_mut().insert(verdict);
        }
        Poll::Ready(Ok(R::from_message(response)))
    }
}

impl<F, R: PeekableResponse> Projection<'_, F, R> {
    /// Reads the body to its end, or to a bound.
    // B-1
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        let Some(Reading { response, plan }) = self.reading else { return Poll::Pending };
        let (plan, body) = (*plan, response.body_mut());
        loop {
            let before = body.held();
            match body.poll_ahead(cx) {
                Poll::Ready(Step::Broke) => return Poll::Ready(Stop::Broke),
                Poll::Ready(step) => {
                    if body.held() > self.terms.settings.up_to as u64 {
                        return Poll::Ready(Stop::Beyond);
                    }
                    if step == Step::Whole {
                        return Poll::Ready(Stop::Whole);
                    }
                    let read = usize::try_from(body.held() - before).unwrap_or(usize::MAX);
                    if body.frames() >= MOST_FRAMES || !self.terms.charge(body, read) {
                        return Poll::Ready(Stop::Beyond);
                    }
                }
                Poll::Pending => {
                    let waits = plan.waits && plan.length.is_some_and(|length| body.held() < length);
                    if waits || clock::poll_held(&mut self.sleep, plan.within, cx).is_pending() {
                        return Poll::Pending;
                    }
                    return Poll::Ready(Stop::Beyond);
                }
            }
        }
    }
}

/// The least charge for a frame, which is about the size of its place.
const LEAST_CHARGE: usize = 128;

impl Terms {
    /// Charges a frame that was read. Returns `false` if the memory of all responses has no room for it.
    // B-11
    fn charge<B: Body>(&self, body: &mut PeekedBody<B>, bytes: usize) -> bool {
        let bytes = bytes.max(LEAST_CHARGE);
        match body.charge_mut() {
            Some(charge) => charge.grow(bytes),
            charge => {
                *charge = self.limits.as_ref().unwrap_or(&self.settings.limits).charge(bytes);
                charge.is_some()
            }
        }
    }

    /// Returns the verdict of the rules on a whole body.
    // B-6
    fn judge<B: Body>(&self, response: &Response<PeekedBody<B>>) -> Option<BodyVerdict> {
        if self.settings.rules.is_empty() || !is_identity(response.headers()) {
            return None;
        }
        let body = response.body().bytes()?;
        let outcome = Outcome::of_response(response.status(), response.headers());
        let classification = self.settings.classify(outcome.with_method(&self.method).with_body(&body))?;
        Some(BodyVerdict::judged(classification))
    }
}

/// Returns the verdict on a body that broke, or `None` if the caller is at fault.
// B-5
fn verdict_of_break<E: 'static>(error: &E) -> Option<BodyVerdict> {
    let Some(error) = view_error(error) else { return Some(BodyVerdict::broke(FailureKind::Network, None)) };
    if fault_of_error(error) == Some(Fault::Caller) {
        return None;
    }
    // A head was sent, so no error proves that nothing was processed.
    let kind = match verdict_of_error(error).failure().map(|failure| failure.kind()) {
        Some(FailureKind::Timeout) => FailureKind::Timeout,
        _ => FailureKind::Network,
    };
    Some(BodyVerdict::broke(kind, Some(chain(error))))
}

impl<F, R: PeekableResponse> fmt::Debug for ResponseFuture<F, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.reading.as_ref().map(|reading| reading.response.body());
        f.debug_struct("ResponseFuture").field("reading", &body).finish_non_exhaustive()
    }
}
