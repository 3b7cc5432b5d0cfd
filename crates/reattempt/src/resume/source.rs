//! The source of the rest of a broken body: the service below the layer, or a function.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use tower::BoxError;
use tower_service::Service;

use super::ResumePoint;
use super::message::{ResumableRequest, ResumableResponse};
use crate::shared::Shared;

/// A source of the rest of a broken body. Every `FnMut(ResumePoint)` is one whose future returns an `http::Response`.
pub trait Source {
    /// The body of a response.
    type Body: Body<Error: Into<BoxError>>;
    /// The error of a request.
    type Error: Into<BoxError>;
    /// The future of a response.
    type Future: Future<Output = Result<Response<Self::Body>, Self::Error>>;

    /// Requests the content from the first missing byte.
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

/// The service below a [`ResumeLayer`](super::ResumeLayer), with the request that it repeats.
pub struct ServiceSource<S, Req: ResumableRequest> {
    pub(super) shared: Arc<Shared<S, ()>>,
    pub(super) head: Req::Head,
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
        let request = Req::for_rest(&self.head, &point);
        RestFuture { unsent: Some((self.shared.spare(), request)), call: None, shared: Arc::clone(&self.shared) }
    }
}

impl<S, Req: ResumableRequest> fmt::Debug for ServiceSource<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceSource").finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of a request for the rest of a body, through a clone of the service.
    pub struct RestFuture<S: Service<Req>, Req> {
        unsent: Option<(S, Req)>,
        #[pin]
        call: Option<S::Future>,
        shared: Arc<Shared<S, ()>>,
    }
}

impl<S, Req> Future for RestFuture<S, Req>
where
    S: Service<Req, Response: ResumableResponse> + Clone,
{
    type Output = Result<Response<<S::Response as ResumableResponse>::Body>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Some((service, _)) = this.unsent {
            let ready = ready!(service.poll_ready(cx));
            let unsent = this.unsent.take();
            ready?;
            this.call.set(unsent.map(|(mut service, request)| {
                let call = service.call(request);
                // The next resume is sent by a clone of this one's instance (trap 42). The instance itself is dropped
                // right after its call, because it may be left in a queue (trap 50).
                this.shared.give_back(service.clone());
                call
            }));
        }
        let Some(call) = this.call.as_pin_mut() else { return Poll::Pending };
        call.poll(cx).map_ok(ResumableResponse::into_message)
    }
}

impl<S: Service<Req>, Req> fmt::Debug for RestFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestFuture").field("sent", &self.call.is_some()).finish_non_exhaustive()
    }
}
