//! The client whose broken downloads are resumed, and the future of its calls.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Schedule};
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::clock::Instant;
use reattempt_engine::wall::frame::{Frame, Tried};
use reattempt_engine::wall::{CallContext, Sending, Shared, inner_accessors, send_method};
use reattempt_engine::{CallOptions, Http};
use reattempt_schedule_exponential::Exponential;
use tower::BoxError;
use tower_service::Service;

use super::message::{self, ResumableRequest, ResumableResponse, ResumedAs};
use super::resumption::Resumption;
use super::settings::{Rules, Settings};
use super::{ResumeBody, ServiceSource};

/// A client whose broken downloads are resumed, created by [`ResumeLayer`](super::ResumeLayer).
///
/// Each resume is sent through a clone of the inner service.
pub struct Resume<S, Backoff = Exponential, B = RetryBudget> {
    inner: S,
    /// The spare instance of the service, which is cloned for resumes.
    shared: Arc<Shared<S, ()>>,
    settings: Arc<Settings<Backoff, B>>,
    rules: Rules,
    options: Option<CallOptions>,
}

impl<S: Clone, Backoff, B> Resume<S, Backoff, B> {
    pub(super) fn new((settings, rules): (Arc<Settings<Backoff, B>>, Rules), inner: S) -> Self {
        Self { shared: Arc::new(Shared::new((), inner.clone())), inner, settings, rules, options: None }
    }

    /// Returns a handle to this client with options for the resumes of all its calls. A request's own options take
    /// precedence.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self.clone() }
    }
}

impl<S, Backoff, B> Resume<S, Backoff, B> {
    inner_accessors!(S, inner);
    send_method!(Sending<Self, Req, <Self as Service<Req>>::Future>);
}

impl<S, Req, Backoff, B> Service<Req> for Resume<S, Backoff, B>
where
    S: Service<Req, Error: Into<BoxError>, Response: ResumedAs<ResumeBody<ServiceSource<S, Req>, Backoff, B>>> + Clone,
    Req: ResumableRequest,
    Http: ReadRequest<Req>,
    Backoff: Schedule,
    B: Budget,
{
    type Response = <S::Response as ResumedAs<ResumeBody<ServiceSource<S, Req>, Backoff, B>>>::Resumed;
    type Error = S::Error;
    type Future = ResponseFuture<S, Req, Backoff, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let settings = &self.settings;
        let kept = request.head().map(|head| {
            let view = <Http as ReadRequest<Req>>::view(&request);
            let own = self.options.as_ref();
            let mut context = Resumption::<ServiceSource<S, Req>, Backoff, B>::context(settings, view, own);
            let limit = request.time_limit().map(|limit| Instant::now().later(limit));
            context.deadline = context.deadline.into_iter().chain(limit).min();
            Kept {
                head,
                context,
                destination: message::destination(&settings.protocol, &request),
                shared: Arc::clone(&self.shared),
                settings: (Arc::clone(settings), self.rules),
                until: Frame::deadline(),
            }
        });
        // An inner set of endpoints reports its pick through the frame. If an outer layer has a frame, that layer must
        // get the pick: its next attempt may go to another server, which may not know an idempotency key.
        let frame = kept.as_ref().map(|_| Frame::outermost(None, None, None));
        let call = self.inner.call(request);
        let tried = frame.map_or(Tried::Nowhere, |mut frame| frame.close());
        ResponseFuture { call, kept: kept.map(|kept| (kept, tried)) }
    }
}

/// The state that is needed for resumes.
struct Kept<S, Req: ResumableRequest, Backoff, B> {
    head: Req::Head,
    context: CallContext,
    destination: Box<str>,
    shared: Arc<Shared<S, ()>>,
    settings: (Arc<Settings<Backoff, B>>, Rules),
    /// The deadline of an outer layer.
    until: Option<Instant>,
}

pin_project! {
    /// The future of a call whose response body may be resumed.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, Backoff, B>
    where
        S: Service<Req>,
        Req: ResumableRequest,
    {
        #[pin]
        call: S::Future,
        // `None` if the response cannot be resumed.
        kept: Option<(Kept<S, Req, Backoff, B>, Tried)>,
    }
}

impl<S, Req, Backoff, B> Future for ResponseFuture<S, Req, Backoff, B>
where
    S: Service<Req, Error: Into<BoxError>, Response: ResumedAs<ResumeBody<ServiceSource<S, Req>, Backoff, B>>> + Clone,
    Req: ResumableRequest,
    Backoff: Schedule,
    B: Budget,
{
    type Output = Result<<S::Response as ResumedAs<ResumeBody<ServiceSource<S, Req>, Backoff, B>>>::Resumed, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let response = ready!(this.call.poll(cx))?;
        let (mut head, body) = response.into_message().into_parts();
        let kept = this.kept.take();
        let point = kept.as_ref().and_then(|(kept, _)| Req::point(&kept.head, head.status, &head.headers));
        let body = match (kept, point) {
            (Some((Kept { head: request, context, destination, shared, settings, until }, tried)), Some(point)) => {
                let path = Req::path(&request);
                let source = ServiceSource::new(shared, request, tried, until);
                ResumeBody::new(body, point, Resumption::new(settings, context, destination, source, &path, &mut head))
            }
            _ => ResumeBody::whole(body),
        };
        Poll::Ready(Ok(S::Response::from_message(http::Response::from_parts(head, body))))
    }
}

impl<S: Clone, Backoff, B> Clone for Resume<S, Backoff, B> {
    fn clone(&self) -> Self {
        let (shared, settings) = (Arc::clone(&self.shared), Arc::clone(&self.settings));
        Self { inner: self.inner.clone(), shared, settings, rules: self.rules, options: self.options.clone() }
    }
}

impl<S: fmt::Debug, Backoff: fmt::Debug, B: fmt::Debug> fmt::Debug for Resume<S, Backoff, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resume")
            .field("inner", &self.inner)
            .field("schedule", &self.settings.strategy)
            .field("budget", &self.settings.budget)
            .finish_non_exhaustive()
    }
}

impl<S: Service<Req>, Req: ResumableRequest, Backoff, B> fmt::Debug for ResponseFuture<S, Req, Backoff, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("resumable", &self.kept.is_some()).finish_non_exhaustive()
    }
}
