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
        // The server did its work for a caller that was too slow or had exhausted its quota.
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
