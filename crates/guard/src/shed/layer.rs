//! The layer that protects a server's service with a guard.

use std::fmt;
use std::sync::Arc;

use http::StatusCode;
use reattempt_core::Verdict;
use reattempt_core::guard::Guard;
use reattempt_engine::Http;
use reattempt_engine::error::BoxedError;
use reattempt_engine::protocol::RequestProtocol;
use tower_layer::Layer;

use super::{Gauge, Shed};
use crate::GuardLayer;

/// A layer that protects a server with a guard and responds to refused calls.
///
/// Clones of the layer and all services that it creates share the guard's state.
pub struct ShedLayer<G, P = Http, Mode = BoxedError>
where
    P: RequestProtocol,
{
    guards: GuardLayer<G, P, Mode>,
    gauge: Arc<Gauge>,
}

impl<G: Guard> ShedLayer<G> {
    /// Creates a layer for an HTTP server whose error is `Infallible`, such as an axum `Router` or one of its handlers.
    pub fn http(guard: G) -> Self {
        // The caller was too slow or exceeded its quota, so the server is not at fault.
        let http = Http::new()
            .destination(|_| "".into())
            .on_status(StatusCode::REQUEST_TIMEOUT, Verdict::Success)
            .on_status(StatusCode::TOO_MANY_REQUESTS, Verdict::Success);
        Self::new(GuardLayer::with(http, guard))
    }
}

impl<G: Guard, P: RequestProtocol, Mode> ShedLayer<G, P, Mode> {
    pub(crate) fn new(guards: GuardLayer<G, P, Mode>) -> Self {
        Self { guards: guards.before_server(), gauge: Arc::new(Gauge::new()) }
    }
}

impl<S, G, P: RequestProtocol + Clone, Mode> Layer<S> for ShedLayer<G, P, Mode> {
    type Service = Shed<S, G, P, Mode>;

    fn layer(&self, inner: S) -> Self::Service {
        Shed { guarded: self.guards.layer(inner), gauge: Arc::clone(&self.gauge) }
    }
}

impl<G, P: RequestProtocol + Clone, Mode> Clone for ShedLayer<G, P, Mode> {
    fn clone(&self) -> Self {
        Self { guards: self.guards.clone(), gauge: Arc::clone(&self.gauge) }
    }
}

impl<G: fmt::Debug, P: RequestProtocol + fmt::Debug, Mode> fmt::Debug for ShedLayer<G, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShedLayer").field("guards", &self.guards).field("gauge", &self.gauge).finish()
    }
}
