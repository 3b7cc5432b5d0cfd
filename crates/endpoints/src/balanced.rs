//! A client with a separate inner client for each endpoint.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_core::Warning;
use reattempt_core::guard::Guard;
use reattempt_engine::Http;
use reattempt_engine::error::{BoxedError, ErrorMode};
use reattempt_engine::protocol::{ReadRequest, RequestProtocol};
use reattempt_engine::wall::{Sending, send_method};
use reattempt_guard::contract::GuardOutcome;
use reattempt_guard::wall::Shared;
use tower_service::Service;

use super::Endpoints;
use super::future::{ResponseFuture, send_to_client};
use super::guard::EndpointGuard;
use super::handle::EndpointsHandle;
use super::source::Source;

/// A client for several servers, with an inner client `C` for each, created by [`Endpoints`].
///
/// The client is always ready. Each call picks an endpoint, and sends the request through a clone of the endpoint's
/// client. If the clone is not ready at once, the client of another endpoint is asked too, and the call waits for the
/// first of the two. The call holds the clone's permit, if there is one, from the moment at which it is made. A client
/// that is ready but unused reserves no connection and no permit of an inner client. An error from an inner client's
/// `poll_ready` is an outcome like any other, unless the other client is still asked.
///
/// Clones share the endpoints. Requests are not rewritten. `Host`, `:authority` and the TLS server name depend on the
/// inner client.
pub struct Balanced<C, P = Http, Mode = BoxedError> {
    shared: Arc<Shared<EndpointGuard<C>, P>>,
    mode: PhantomData<fn() -> Mode>,
}

impl<S: Source> Endpoints<S> {
    /// Creates an HTTP client with the defaults of [`Http`], for `http::Request` or `reqwest::Request`.
    pub fn http(self) -> Balanced<S::Client> {
        self.with(Http::new())
    }

    /// Creates a client for a protocol with custom settings, such as its classification.
    pub fn with<P: RequestProtocol>(self, protocol: P) -> Balanced<S::Client, P, P::Errors> {
        let guard = Arc::new(EndpointGuard::new(self.settings));
        self.source.begin(&guard);
        Balanced::of(Shared::of(protocol, guard))
    }
}

impl<C, P, Mode> Balanced<C, P, Mode> {
    fn of(mut shared: Shared<EndpointGuard<C>, P>) -> Self {
        shared.attempt_timeout = shared.guard.settings.attempt_timeout;
        Self { shared: Arc::new(shared), mode: PhantomData }
    }

    /// Returns a handle to the endpoints.
    pub fn endpoints(&self) -> EndpointsHandle<C> {
        EndpointsHandle::new(&self.shared.guard)
    }

    /// Changes the error type to tower's `BoxError`.
    ///
    /// This is needed only for a protocol whose refusals are responses. By default, such a protocol keeps the inner
    /// client's error type, which must then implement `Error`. A `BoxError` does not implement it.
    pub fn boxed_errors(self) -> Balanced<C, P, BoxedError> {
        Balanced { shared: self.shared, mode: PhantomData }
    }
}

impl<C: Send + Sync + 'static, P, Mode> Balanced<C, P, Mode> {
    /// Returns a warning for each unusual setting, for more than 100 endpoints without a subset, and for a random
    /// subset that may leave some without a client.
    pub fn validate(&self) -> Vec<Warning> {
        self.shared.guard.validate()
    }

    send_method!(Sending<Self, Req, <Self as Service<Req>>::Future>);
}

impl<C, Req, P, Mode> Service<Req> for Balanced<C, P, Mode>
where
    C: Service<Req> + Clone + Send + Sync + 'static,
    P: ReadRequest<Req> + GuardOutcome<C::Response, C::Error, Mode>,
    Mode: ErrorMode<C::Error>,
{
    type Response = P::Guarded<EndpointGuard<C>>;
    type Error = Mode::Error;
    type Future = ResponseFuture<C, Req, C::Future, C::Error, P, Mode>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Mode::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        if self.shared.guard.discovery.holds_up_calls() {
            self.shared.guard.discovery.start();
            if self.shared.guard.discovery.is_awaited() {
                return ResponseFuture::waiting(Arc::clone(&self.shared), request);
            }
        }
        send_to_client(&self.shared, request)
    }
}

impl<C, P, Mode> Clone for Balanced<C, P, Mode> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), mode: PhantomData }
    }
}

impl<C, P: fmt::Debug, Mode> fmt::Debug for Balanced<C, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Balanced")
            .field("endpoints", &self.endpoints())
            .field("protocol", &self.shared.protocol)
            .finish()
    }
}
