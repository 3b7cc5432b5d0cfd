//! The source of the rest of a broken body: the service below the layer, or a function.

use std::fmt;
use std::marker::PhantomData;
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
use crate::send::{Sending, send};
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
        RestFuture { sending: send(self.shared.spare(), Req::for_rest(&self.head, &point)), request: PhantomData }
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
        #[pin]
        sending: Sending<S, Req, S::Future>,
        request: PhantomData<fn(Req)>,
    }
}

impl<S, Req> Future for RestFuture<S, Req>
where
    S: Service<Req, Response: ResumableResponse>,
{
    type Output = Result<Response<<S::Response as ResumableResponse>::Body>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let response = ready!(self.project().sending.poll(cx));
        Poll::Ready(response.map(ResumableResponse::into_message))
    }
}

impl<S: Service<Req>, Req> fmt::Debug for RestFuture<S, Req> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RestFuture").finish_non_exhaustive()
    }
}
