//! The measurement of an HTTP call or attempt: the service and its future.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use reattempt_engine::Http;
use reattempt_engine::error::{ErrorMode, OwnError};
use reattempt_engine::protocol::ReadRequest;
use tower_service::Service;

use super::labels::{ResponseHead, error_type};
use super::record::Record;
use super::{HttpTelemetry, Measured};

impl<S, Req, Mode> Service<Req> for Measured<S, HttpTelemetry<Mode>>
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
        let mut record = Record::begin(&self.telemetry.shared, self.side, Http::view(&request));
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
                    Ok(response) => record.responded(response.head(), response.broke()),
                    Err(error) => record.failed(error_type(Mode::view(error))),
                }
            }
            result
        })
    }
}

impl<F, Mode> fmt::Debug for ResponseFuture<F, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("ended", &self.record.is_none()).finish_non_exhaustive()
    }
}
