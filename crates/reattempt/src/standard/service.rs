//! The service that the layer makes.

use std::task::{Context, Poll};
use std::time::Duration;

use tower_service::Service;

use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::retry::service::Retry;
use crate::send::send;

/// A client behind the standard stack, made by [`StandardLayer`](super::StandardLayer).
///
/// `R` is the retried and guarded client inside.
#[derive(Debug, Clone)]
pub struct Standard<R> {
    retry: R,
    total_time: Duration,
}

impl<R> Standard<R> {
    pub(super) fn new(retry: R, total_time: Duration) -> Self {
        Self { retry, total_time }
    }

    /// Returns the retried client.
    pub fn get_ref(&self) -> &R {
        &self.retry
    }

    /// Sends one request, by a clone of this handle; see [`Retry::send`](crate::Retry::send).
    ///
    /// # Errors
    /// Returns the error of the call, or of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    pub fn send<Req>(
        &self,
        request: Req,
    ) -> impl Future<
        Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>,
    > + use<R, Req>
    where
        Self: Service<Req> + Clone,
    {
        send(self.clone(), request)
    }
}

impl<S, P, Req> Service<Req> for Standard<Retry<S, P>>
where
    Retry<S, P>: Service<Req>,
{
    type Response = <Retry<S, P> as Service<Req>>::Response;
    type Error = <Retry<S, P> as Service<Req>>::Error;
    type Future = <Retry<S, P> as Service<Req>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.retry.poll_ready(cx)
    }

    /// Begins a call that must be over after the total time, or at its own deadline if that is earlier.
    fn call(&mut self, request: Req) -> Self::Future {
        let deadline = Deadline::after(self.total_time);
        self.retry.set_options(CallOptions::new().deadline(deadline));
        self.retry.call(request)
    }
}
