//! The service that sheds load and responds to refused calls.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::Request;
use reattempt_core::guard::Guard;
use reattempt_engine::Http;
use reattempt_engine::error::{BoxedError, ErrorMode};
use reattempt_engine::protocol::ReadRequest;
use reattempt_engine::wall::inner_accessors;
use tower_service::Service;

use super::{Gauge, ResponseFuture, ShedProtocol};
use crate::Guarded;

/// A service that sheds load, created by [`ShedLayer`](super::ShedLayer).
pub struct Shed<S, G, P = Http, Mode = BoxedError> {
    pub(super) guarded: Guarded<S, G, P, Mode>,
    pub(super) gauge: Arc<Gauge>,
}

impl<S, G, P, Mode> Shed<S, G, P, Mode> {
    inner_accessors!(S, guarded.inner);
}

impl<S, A, G, P, Mode> Service<Request<A>> for Shed<S, G, P, Mode>
where
    S: Service<Request<A>> + Clone,
    G: Guard,
    P: ReadRequest<Request<A>> + ShedProtocol<S::Response, S::Error, Mode>,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Shed<G>;
    type Error = S::Error;
    type Future = ResponseFuture<S, A, S::Future, G, P, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.guarded.get_mut().poll_ready(cx)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        self.gauge.record_arrival(P::is_retry(request.headers()));
        ResponseFuture { call: self.guarded.call(request), gauge: Arc::clone(&self.gauge) }
    }
}

impl<S: Clone, G, P, Mode> Clone for Shed<S, G, P, Mode> {
    fn clone(&self) -> Self {
        Self { guarded: self.guarded.clone(), gauge: Arc::clone(&self.gauge) }
    }
}

impl<S: fmt::Debug, G: fmt::Debug, P: fmt::Debug, Mode> fmt::Debug for Shed<S, G, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shed").field("guarded", &self.guarded).field("gauge", &self.gauge).finish()
    }
}
