//! The layer that measures calls or attempts, its service and its future.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use super::HttpTelemetry;
use super::labels::{ResponseHead, error_type};
use super::output::Side;
use super::record::Record;
use crate::accessors::inner_accessors;
use crate::error_mode::{ErrorMode, OwnError};
use crate::protocol::{Http, ReadRequest};
use crate::send::send_method;

/// A layer that measures calls or attempts. [`HttpTelemetry::around`] creates one of each.
pub struct HttpTelemetryLayer<Mode = OwnError> {
    telemetry: HttpTelemetry<Mode>,
    side: Side,
}

impl<Mode> HttpTelemetryLayer<Mode> {
    pub(super) fn of_calls(telemetry: HttpTelemetry<Mode>) -> Self {
        Self { telemetry, side: Side::Call }
    }

    pub(super) fn of_attempts(telemetry: HttpTelemetry<Mode>) -> Self {
        Self { telemetry, side: Side::Attempt }
    }
}

impl<S, Mode> Layer<S> for HttpTelemetryLayer<Mode> {
    type Service = Measured<S, Mode>;

    fn layer(&self, inner: S) -> Measured<S, Mode> {
        Measured { inner, layer: self.clone() }
    }
}

/// An HTTP client whose calls or attempts are measured; created by [`HttpTelemetry::around`].
pub struct Measured<S, Mode = OwnError> {
    inner: S,
    layer: HttpTelemetryLayer<Mode>,
}

impl<S, Mode> Measured<S, Mode> {
    inner_accessors!(S, inner);
    send_method!();
}

impl<S, Req, Mode> Service<Req> for Measured<S, Mode>
where
    S: Service<Req, Response: ResponseHead>,
    Http: ReadRequest<Req>,
    Mode: ErrorMode<S::Error>,
{
    type Response = S::Response;
    type Error = Mode::Error;
    type Future = ResponseFuture<S::Future, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Mode::Error>> {
        self.inner.poll_ready(cx).map_err(Mode::own)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let record = Record::begin(&self.layer.telemetry.shared, self.layer.side, Http::view(&request));
        let inner = record.within(|| self.inner.call(request));
        ResponseFuture { inner, record: Some(record), mode: PhantomData }
    }
}

pin_project! {
    /// The future of [`Measured`].
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call or the attempt, whose `error.type` is then `cancelled`.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, Mode = OwnError> {
        // Declared before `record`, so that attempts end before their call.
        #[pin]
        inner: F,
        // `None` once there is an outcome.
        record: Option<Record>,
        mode: PhantomData<fn() -> Mode>,
    }
}

impl<F, R, E, Mode> Future for ResponseFuture<F, Mode>
where
    F: Future<Output = Result<R, E>>,
    R: ResponseHead,
    Mode: ErrorMode<E>,
{
    type Output = Result<R, Mode::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = match this.record {
            Some(record) => record.within(|| this.inner.poll(cx)),
            None => this.inner.poll(cx),
        };
        result.map(|result| {
            let result = result.map_err(Mode::own);
            if let Some(record) = this.record.take() {
                match &result {
                    Ok(response) => record.responded(response.head()),
                    Err(error) => record.failed(error_type(Mode::view(error))),
                }
            }
            result
        })
    }
}

impl<Mode> Clone for HttpTelemetryLayer<Mode> {
    fn clone(&self) -> Self {
        Self { telemetry: self.telemetry.clone(), side: self.side }
    }
}

impl<S: Clone, Mode> Clone for Measured<S, Mode> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), layer: self.layer.clone() }
    }
}

impl<Mode> fmt::Debug for HttpTelemetryLayer<Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTelemetryLayer").field("telemetry", &self.telemetry).field("side", &self.side).finish()
    }
}

impl<S: fmt::Debug, Mode> fmt::Debug for Measured<S, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Measured").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

impl<F, Mode> fmt::Debug for ResponseFuture<F, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("ended", &self.record.is_none()).finish_non_exhaustive()
    }
}
