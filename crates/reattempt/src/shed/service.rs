//! The service of a server that sheds load, which turns its guard's refusals into responses.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use reattempt_core::guard::Guard;
use tower_service::Service;

use super::{Gauge, ResponseFuture, ShedProtocol};
use crate::accessors::inner_accessors;
use crate::error_mode::{BoxedError, ErrorMode};
use crate::guard::Guarded;
use crate::protocol::{Http, ReadRequest};

/// A server that sheds load, made by [`ShedLayer`](super::ShedLayer).
pub struct Shed<S, G, K = Http, M = BoxedError> {
    pub(super) guarded: Guarded<S, G, K, M>,
    pub(super) gauge: Arc<Gauge>,
}

impl<S, G, K, M> Shed<S, G, K, M> {
    inner_accessors!(S, guarded.inner);
}

impl<S, A, G, K, M> Service<Request<A>> for Shed<S, G, K, M>
where
    S: Service<Request<A>> + Clone,
    G: Guard,
    K: ReadRequest<Request<A>> + ShedProtocol<S::Response, S::Error, M>,
    M: ErrorMode<S::Error>,
{
    type Response = K::Shed<G>;
    type Error = S::Error;
    type Future = ResponseFuture<S, A, S::Future, G, K, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.guarded.get_mut().poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        self.gauge.record_arrival(K::is_retry(request.headers()));
        ResponseFuture { call: self.guarded.call(request), gauge: Arc::clone(&self.gauge) }
    }
}

impl<S: Clone, G, K, M> Clone for Shed<S, G, K, M> {
    fn clone(&self) -> Self {
        Self { guarded: self.guarded.clone(), gauge: Arc::clone(&self.gauge) }
    }
}

impl<S: fmt::Debug, G: fmt::Debug, K: fmt::Debug, M> fmt::Debug for Shed<S, G, K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shed").field("guarded", &self.guarded).field("gauge", &self.gauge).finish()
    }
}
