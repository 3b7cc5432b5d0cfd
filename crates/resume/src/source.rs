//! The source of the rest of a broken body: the inner service or a function.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use reattempt_control::Trail;
use reattempt_engine::wall::clock::Instant;
use reattempt_engine::wall::frame::Tried;
use reattempt_engine::wall::{Sending, Shared, send, send_next};
use tower::BoxError;
use tower_service::Service;

use super::ResumePoint;
use super::message::{ResumableRequest, ResumableResponse};

/// A source of the rest of a broken body. Every `FnMut(ResumePoint)` whose future returns an `http::Response` is a
/// source.
pub trait Source {
    /// The response body.
    type Body: Body<Error: Into<BoxError>>;
    /// The error of a request.
    type Error: Into<BoxError>;
    /// The future that returns a response.
    type Future: Future<Output = Result<Response<Self::Body>, Self::Error>>;

    /// Requests the content, starting at the first missing byte.
    fn request_rest(&mut self, point: ResumePoint) -> Self::Future;
}

impl<F, Fut, B, E> Source for F
where
    F: FnMut(ResumePoint) -> Fut,
    Fut: Future<Output = Result<Response<B>, E>>,
    B: Body<Error: Into<BoxError>>,
    E: Into<BoxError>,
{
    type Body = B;
    type Error = E;
    type Future = Fut;

    fn request_rest(&mut self, point: ResumePoint) -> Fut {
        self(point)
    }
}

/// The inner service of a [`ResumeLayer`](super::ResumeLayer), with the head of the request to repeat.
pub struct ServiceSource<S, Req: ResumableRequest> {
    shared: Arc<Shared<S, ()>>,
    head: Req::Head,
    /// The endpoint that the last request was sent to.
    tried: Tried,
    /// The endpoints that were tried since the last new byte.
    trail: Trail,
    received: u64,
    /// The deadline of an outer layer.
    until: Option<Instant>,
}

impl<S, Req: ResumableRequest> ServiceSource<S, Req> {
    pub(super) fn new(shared: Arc<Shared<S, ()>>, head: Req::Head, tried: Tried, until: Option<Instant>) -> Self {
        Self { shared, head, tried, trail: Trail::new(), received: 0, until }
    }
}

impl<S, Req> Source for ServiceSource<S, Req>
where
    Req: ResumableRequest,
    S: Service<Req, Response: ResumableResponse, Error: Into<BoxError>> + Clone,
{
    type Body = <S::Response as ResumableResponse>::Body;
    type Error = S::Error;
    type Future = RestFuture<S, Req>;

    fn request_rest(&mut self, point: ResumePoint) -> Self::Future {
        if point.received() > self.received {
            (self.received, self.trail) = (point.received(), Trail::new());
        }
        self.tried.follow(&mut self.trail);
        let picked = Arc::default();
        self.tried = Tried::Later(Arc::clone(&picked));
        let shared = Arc::clone(&self.shared);
        let spare = Spare { service: shared.spare(), shared, trail: self.trail, until: self.until, picked };
        RestFuture { call: send(spare, Req::for_rest(&self.head, &point)) }
    }
}

impl<S, Req: ResumableRequest> fmt::Debug for ServiceSource<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSource").finish_non_exhaustive()
    }
}

/// An instance of the service for one resume. A clone of it becomes the spare instance after the call.
struct Spare<S> {
    service: S,
    shared: Arc<Shared<S, ()>>,
    trail: Trail,
    until: Option<Instant>,
    picked: Arc<OnceLock<Tried>>,
}

impl<S: Service<Req> + Clone, Req> Service<Req> for Spare<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.service.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> S::Future {
        let (call, tried) = send_next(&mut self.service, request, &self.trail, self.until, None);
        // Each instance is called only once.
        let _ = self.picked.set(tried);
        // The next resume uses a clone of this resume's instance (trap 42). The instance itself is dropped right after
        // its call, because it may still be in a queue (trap 50).
        self.shared.give_back(self.service.clone());
        call
    }
}

pin_project! {
    /// The future of a request for the rest of a body, sent through a clone of the service.
    pub struct RestFuture<S: Service<Req>, Req> {
        #[pin]
        call: Sending<Spare<S>, Req, S::Future>,
    }
}

impl<S: Service<Req, Response: ResumableResponse> + Clone, Req> Future for RestFuture<S, Req> {
    type Output = Result<Response<<S::Response as ResumableResponse>::Body>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.project().call.poll(cx).map_ok(ResumableResponse::into_message)
    }
}

impl<S: Service<Req>, Req> fmt::Debug for RestFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestFuture").field("call", &self.call).finish()
    }
}
