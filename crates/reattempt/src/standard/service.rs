//! The client in a standard stack.

use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Budget, Schedule};
use reattempt_engine::error::ErrorMode;
use reattempt_engine::hedge::{Hedge, HedgePolicy};
use reattempt_engine::protocol::{ClassifyOutcome, Replay};
use reattempt_engine::wall::{Origin, inner_accessors, send_method};
use reattempt_engine::{CallOptions, Retry, RetryPolicy, hedge, retry};
use tower_service::Service;

/// A client in the standard stack, created by [`StandardLayer`](super::StandardLayer).
///
/// `R` is the guarded client with its retries or hedges.
#[derive(Debug, Clone)]
pub struct Standard<R> {
    client: R,
    total_time: Duration,
}

impl<R> Standard<R> {
    pub(super) fn new(client: R, total_time: Duration) -> Self {
        Self { client, total_time }
    }

    inner_accessors!(R, client);

    send_method!(
        impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<R, Req>
    );
}

impl<S: Clone, Policy: Clone> Standard<Retry<S, Policy>> {
    /// Returns a handle to this client with these options for all calls. A request's own options take precedence. If
    /// the options have a deadline, the call ends at that deadline or after the total time, whichever is earlier.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self::new(self.client.with_options(options), self.total_time)
    }
}

impl<S: Clone, Policy: Clone> Standard<Hedge<S, Policy>> {
    /// Returns a handle to this client with these options for all calls; see
    /// [`Hedge::with_options`](reattempt_engine::hedge::Hedge::with_options). If the options have a deadline, the call
    /// ends at that deadline or after the total time, whichever is earlier.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self::new(self.client.with_options(options), self.total_time)
    }
}

impl<S, Req, Attempt, P, Backoff, B, Mode> Service<Req> for Standard<Retry<S, RetryPolicy<P, Backoff, B, Mode>>>
where
    S: Service<Attempt> + Clone,
    P: Replay<Req, Attempt = Attempt> + Origin<Attempt, Request = Req> + ClassifyOutcome<S::Response>,
    Backoff: Schedule,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Answer;
    type Error = Mode::Error;
    type Future = retry::ResponseFuture<S, Req, P, Backoff, B, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.client.poll_ready(cx)
    }

    /// Starts a call that ends after the total time or at its own deadline, whichever is earlier.
    fn call(&mut self, request: Req) -> Self::Future {
        self.client.call_within(Some(self.total_time), request)
    }
}

impl<S, Req, Attempt, P, B, Mode> Service<Req> for Standard<Hedge<S, HedgePolicy<P, B, Mode>>>
where
    S: Service<Attempt> + Clone,
    P: Replay<Req, Attempt = Attempt> + Origin<Attempt, Request = Req>,
    P: ClassifyOutcome<S::Response>,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Answer;
    type Error = Mode::Error;
    type Future = hedge::ResponseFuture<S, Req, P, B, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.client.poll_ready(cx)
    }

    /// Starts a call that ends after the total time or at its own deadline, whichever is earlier.
    fn call(&mut self, request: Req) -> Self::Future {
        self.client.call_within(self.total_time, request)
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use tower::{Layer, ServiceExt, service_fn};

    use crate::standard::StandardLayer;
    use reattempt_engine::ReplayBody;
    use reattempt_engine::wall::clock::READINGS;

    /// The clock is read at the start, for the deadline and the guards, and at the end, to release a place.
    #[tokio::test]
    async fn first_success_reads_clock_twice() {
        let server =
            service_fn(async |_: Request<ReplayBody<String>>| Ok::<_, Infallible>(Response::new(String::new())));
        let client = StandardLayer::http().layer(server);
        for _ in 0..3 {
            let before = READINGS.get();
            let request = Request::get("http://one.example/").body(String::new()).unwrap();
            client.clone().oneshot(request).await.unwrap();
            assert_eq!(READINGS.get() - before, 2);
        }
    }
}
