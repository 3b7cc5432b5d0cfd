//! The measurement of a gRPC call or attempt: the service and its future.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use reattempt_engine::body::Watched;
use reattempt_engine::error::{ErrorMode, OwnError};
use reattempt_engine::wall::grpc::code_of_error;
use reattempt_grpc::code_of_head;
use tonic::body::Body;
use tower_service::Service;

use super::span::Span;
use super::{GrpcMetrics, MeasuredBody, MeasuredEnd};
use crate::Measured;
use crate::layer::Side;

impl<S, Mode, B> Service<Request<Body>> for Measured<S, GrpcMetrics<Mode>>
where
    S: Service<Request<Body>, Response = Response<B>>,
    Mode: ErrorMode<S::Error>,
{
    type Response = Response<MeasuredBody<B>>;
    type Error = Mode::Error;
    type Future = ResponseFuture<S::Future, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Mode::Error>> {
        self.inner.poll_ready(cx).map_err(Mode::own)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let instruments = &self.telemetry.instruments;
        let (span, request) = match self.side {
            Side::Call => (Span::call(instruments, &mut request), request),
            Side::Attempt => Span::attempt(instruments, request),
        };
        let inner = self.inner.call(request);
        ResponseFuture { inner, span: Some(span), mode: std::marker::PhantomData }
    }
}

pin_project! {
    /// The future of [`Measured`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call or the attempt, which is then recorded as cancelled.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, Mode = OwnError> {
        // Declared before `span`, so that inner measurements end before outer ones.
        #[pin]
        inner: F,
        // `None` once there is an outcome.
        span: Option<Span>,
        mode: std::marker::PhantomData<fn() -> Mode>,
    }
}

impl<F, B, E, Mode> Future for ResponseFuture<F, Mode>
where
    F: Future<Output = Result<Response<B>, E>>,
    Mode: ErrorMode<E>,
{
    type Output = Result<Response<MeasuredBody<B>>, Mode::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.inner.poll(cx)).map_err(Mode::own);
        let mut span = this.span.take();
        let code = match &result {
            Ok(response) => code_of_head(response.status(), response.headers()),
            Err(error) => Some(code_of_error(Mode::view(error))),
        };
        if let Some(code) = code
            && let Some(span) = span.take()
        {
            span.end_with(code);
        }
        Poll::Ready(result.map(|response| response.map(|inner| Watched::new(inner, MeasuredEnd(span)))))
    }
}

impl<F, Mode> fmt::Debug for ResponseFuture<F, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("ended", &self.span.is_none()).finish_non_exhaustive()
    }
}
