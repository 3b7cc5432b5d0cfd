//! One client for several base URLs.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_engine::Http;
use reattempt_engine::error::{BoxedError, ErrorMode};
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::{Sending, send_method};
use reattempt_guard::contract::{GuardOutcome, ResponseFuture};
use reattempt_guard::wall::Shared;
use tower_service::Service;

use super::base_url::BaseUrl;
use super::guard::EndpointGuard;
use super::handle::EndpointsHandle;
use super::rewrite::Rewrite;
use super::send::direct;

/// A client that sends its requests to one of several base URLs, created by [`EndpointsLayer`](super::EndpointsLayer).
///
/// Clones share the endpoints. Cloning this type clones the inner service.
pub struct Directed<S, P = Http, Mode = BoxedError> {
    inner: S,
    shared: Arc<Shared<EndpointGuard<BaseUrl>, P>>,
    base: Arc<BaseUrl>,
    mode: PhantomData<fn() -> Mode>,
}

impl<S, P, Mode> Directed<S, P, Mode> {
    pub(super) fn new(shared: Arc<Shared<EndpointGuard<BaseUrl>, P>>, base: Arc<BaseUrl>, inner: S) -> Self {
        Self { inner, shared, base, mode: PhantomData }
    }

    /// Returns a handle to the endpoints.
    pub fn endpoints(&self) -> EndpointsHandle<BaseUrl> {
        EndpointsHandle::new(&self.shared.guard)
    }

    /// Returns the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    send_method!(Sending<Self, Req, <Self as Service<Req>>::Future>);
}

impl<S, Req, P, Mode> Service<Req> for Directed<S, P, Mode>
where
    S: Service<Req> + Clone,
    Req: Rewrite,
    P: ReadRequest<Req> + GuardOutcome<S::Response, S::Error, Mode>,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Guarded<EndpointGuard<BaseUrl>>;
    type Error = Mode::Error;
    type Future = ResponseFuture<S, Req, S::Future, EndpointGuard<BaseUrl>, P, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Mode::Error>> {
        self.inner.poll_ready(cx).map_err(Mode::own)
    }

    #[inline]
    fn call(&mut self, request: Req) -> Self::Future {
        direct(&self.shared, &self.base, &mut self.inner, request)
    }
}

impl<S: Clone, P, Mode> Clone for Directed<S, P, Mode> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.shared), Arc::clone(&self.base), self.inner.clone())
    }
}

impl<S: fmt::Debug, P: fmt::Debug, Mode> fmt::Debug for Directed<S, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Directed")
            .field("inner", &self.inner)
            .field("endpoints", &self.endpoints())
            .field("base", &self.base)
            .finish()
    }
}
