//! The services inside the retries: first the guards, then the endpoints. Both are optional.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_core::guard::SharedGuard;
use reattempt_endpoints::wall::direct;
use reattempt_endpoints::{BaseUrl, EndpointGuard, Rewrite};
use reattempt_engine::error::ErrorMode;
use reattempt_engine::protocol::{ReadRequest, RequestProtocol};
use reattempt_guard::Guarded;
use reattempt_guard::contract::{GuardOutcome, ResponseFuture};
use reattempt_guard::wall::Shared;
use tower_service::Service;

use super::PolicyStack;

/// The error mode of a table's clients.
type Errors<P> = <P as RequestProtocol>::Errors;
/// A policy's guards, if it has any.
type Guards = Option<SharedGuard>;

/// A set of endpoints with the base URL of its requests.
pub(super) struct Directed<P> {
    shared: Arc<Shared<EndpointGuard<BaseUrl>, P>>,
    base: Arc<BaseUrl>,
}

impl<P> Clone for Directed<P> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), base: Arc::clone(&self.base) }
    }
}

/// A client whose policy may send its attempts to one of several endpoints.
pub struct Directions<S, P> {
    pub(super) inner: S,
    pub(super) endpoints: Option<Directed<P>>,
}

impl<S, Req, P> Service<Req> for Directions<S, P>
where
    S: Service<Req> + Clone,
    Req: Rewrite,
    P: ReadRequest<Req> + GuardOutcome<S::Response, S::Error, Errors<P>>,
    Errors<P>: ErrorMode<S::Error>,
{
    type Response = P::Guarded<EndpointGuard<BaseUrl>>;
    type Error = <Errors<P> as ErrorMode<S::Error>>::Error;
    type Future = ResponseFuture<S, Req, S::Future, EndpointGuard<BaseUrl>, P, Errors<P>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Errors::<P>::own)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        match &self.endpoints {
            Some(Directed { shared, base }) => direct(shared, base, &mut self.inner, request),
            None => ResponseFuture::passing(self.inner.call(request)),
        }
    }
}

/// A client whose policy may have guards and endpoints for its attempts.
pub struct Attempts<S, P: RequestProtocol> {
    pub(super) guarded: Guarded<Directions<S, P>, Guards, P, Errors<P>>,
}

/// The guards and endpoints of one policy, which can be installed in a client.
pub(super) struct Seat<P> {
    guards: Arc<Shared<Guards, P>>,
    endpoints: Option<Directed<P>>,
}

impl<P: RequestProtocol + Clone> Seat<P> {
    pub(super) fn of(stack: &PolicyStack<P>) -> Self {
        let endpoints = stack.endpoints.as_ref().map(|layer| {
            let (shared, base) = layer.parts();
            Directed { shared: Arc::new(shared.clone()), base: Arc::clone(base) }
        });
        Self { guards: Arc::new(stack.guards.parts().clone()), endpoints }
    }

    /// Returns a client with these guards and endpoints.
    pub(super) fn seat<S>(&self, inner: S) -> Attempts<S, P> {
        let directions = Directions { inner, endpoints: self.endpoints.clone() };
        Attempts { guarded: Guarded::new(Arc::clone(&self.guards), directions) }
    }

    /// Installs these guards and endpoints in a client. Its inner service stays ready.
    pub(super) fn take_over<S>(&self, client: &mut Attempts<S, P>) {
        client.guarded.shared = Arc::clone(&self.guards);
        client.guarded.inner.endpoints = self.endpoints.clone();
    }
}

impl<S, Req, P> Service<Req> for Attempts<S, P>
where
    Directions<S, P>: Service<Req> + Clone,
    P: ReadRequest<Req>,
    P: GuardOutcome<<Directions<S, P> as Service<Req>>::Response, <Directions<S, P> as Service<Req>>::Error, Errors<P>>,
    Errors<P>: ErrorMode<<Directions<S, P> as Service<Req>>::Error>,
{
    type Response = <Guarded<Directions<S, P>, Guards, P, Errors<P>> as Service<Req>>::Response;
    type Error = <Guarded<Directions<S, P>, Guards, P, Errors<P>> as Service<Req>>::Error;
    type Future = <Guarded<Directions<S, P>, Guards, P, Errors<P>> as Service<Req>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.guarded.poll_ready(cx)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        match self.guarded.shared.is_open() {
            true => ResponseFuture::passing(self.guarded.inner.call(request)),
            false => self.guarded.call(request),
        }
    }
}

impl<S: Clone, P> Clone for Directions<S, P> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), endpoints: self.endpoints.clone() }
    }
}

impl<S: Clone, P: RequestProtocol> Clone for Attempts<S, P> {
    fn clone(&self) -> Self {
        Self { guarded: self.guarded.clone() }
    }
}

impl<S: fmt::Debug, P> fmt::Debug for Directions<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints = self.endpoints.is_some();
        f.debug_struct("Directions").field("inner", &self.inner).field("has_endpoints", &endpoints).finish()
    }
}

impl<S: fmt::Debug, P: RequestProtocol> fmt::Debug for Attempts<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attempts").field("inner", &self.guarded.inner).finish_non_exhaustive()
    }
}
