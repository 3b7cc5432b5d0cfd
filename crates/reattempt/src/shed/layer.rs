//! The layer that puts a guard in front of a server's service.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use reattempt_core::Verdict;
use reattempt_core::guard::Guard;
use tower_layer::Layer;

use super::{Gauge, Shed};
use crate::error_mode::BoxedError;
use crate::guard::GuardLayer;
use crate::protocol::{Http, RequestProtocol};

/// A layer that guards a server, and responds to the calls that the guard refuses.
///
/// All requests share one state of the guard, across clones of the layer and all services that it creates.
pub struct ShedLayer<G, K = Http, M = BoxedError>
where
    K: RequestProtocol,
{
    guards: GuardLayer<G, K, M>,
    gauge: Arc<Gauge>,
}

impl<G: Guard> ShedLayer<G> {
    /// Creates a layer for an HTTP server whose error is `Infallible`, such as an axum `Router` or one of its handlers.
    pub fn http(guard: G) -> Self {
        // The server did its work for a caller that was too slow or had exhausted its quota.
        let http = Http::new()
            .destination(|_| "".into())
            .on_status(StatusCode::REQUEST_TIMEOUT, Verdict::Success)
            .on_status(StatusCode::TOO_MANY_REQUESTS, Verdict::Success);
        Self::new(GuardLayer::with(http, guard))
    }
}

impl<G: Guard, K: RequestProtocol, M> ShedLayer<G, K, M> {
    pub(crate) fn new(guards: GuardLayer<G, K, M>) -> Self {
        Self { guards: guards.before_server(), gauge: Arc::new(Gauge::new()) }
    }
}

impl<S, G, K: RequestProtocol + Clone, M> Layer<S> for ShedLayer<G, K, M> {
    type Service = Shed<S, G, K, M>;

    fn layer(&self, inner: S) -> Self::Service {
        Shed { guarded: self.guards.layer(inner), gauge: Arc::clone(&self.gauge) }
    }
}

impl<G, K: RequestProtocol + Clone, M> Clone for ShedLayer<G, K, M> {
    fn clone(&self) -> Self {
        Self { guards: self.guards.clone(), gauge: Arc::clone(&self.gauge) }
    }
}

impl<G: fmt::Debug, K: RequestProtocol + fmt::Debug, M> fmt::Debug for ShedLayer<G, K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedLayer").field("guards", &self.guards).field("gauge", &self.gauge).finish()
    }
}
