//! The deadline of an inbound call, which handlers can propagate to outbound calls.
//!
//! [`InboundDeadlineLayer`] wraps a server. It reads `grpc-timeout` and inserts a [`Deadline`] into the
//! request's extensions.

use std::task::{Context, Poll};

use http::Request;
use tower_layer::Layer;
use tower_service::Service;

use crate::accessors::inner_accessors;
use crate::call::deadline::Deadline;

/// A layer for servers that reads the `grpc-timeout` of each inbound request and puts the [`Deadline`] into the
/// request's extensions.
///
/// A handler [propagates](Deadline::propagate) the deadline to its outbound calls. The layer works with every server
/// that is a tower `Service` of `http::Request`s:
///
/// | server | where to add the layer | inbound extensions in a handler |
/// |---|---|---|
/// | axum | `Router::layer` | an argument of type `http::Extensions` |
/// | tonic | `Server::builder().layer(…)` | `request.extensions()` |
///
/// The peer chooses the timeout. An outbound call that ends at a propagated deadline is recorded as a timeout of its
/// server. Enough such timeouts open a circuit breaker for all callers. If peers are untrusted, either do not propagate
/// their deadlines, or refuse requests with too little time [left](Deadline::remaining).
///
/// Make it the outermost layer, because the timeout starts when this layer gets the request. A request with a missing
/// or malformed header gets no deadline. An earlier deadline that an outer layer has set is kept.
///
/// ```
/// use std::convert::Infallible;
/// use http::{Request, Response};
/// use reattempt::Deadline;
/// use reattempt::grpc::inbound_deadline::InboundDeadlineLayer;
/// use tower::{Layer, ServiceExt, service_fn};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let handler = service_fn(|inbound: Request<()>| async move {
///     let mut outbound = Request::new(());
///     Deadline::propagate(inbound.extensions(), outbound.extensions_mut());
///     // … send it with a retrying client. Each attempt's header contains the time left.
///     Ok::<_, Infallible>(Response::new(outbound.extensions().get::<Deadline>().is_some()))
/// });
/// let server = InboundDeadlineLayer.layer(handler);
/// let inbound = Request::builder().header("grpc-timeout", "1500m").body(()).unwrap();
/// assert!(server.oneshot(inbound).await.unwrap().into_body());
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct InboundDeadlineLayer;

impl<S> Layer<S> for InboundDeadlineLayer {
    type Service = InboundDeadline<S>;

    fn layer(&self, inner: S) -> InboundDeadline<S> {
        InboundDeadline { inner }
    }
}

/// The service of [`InboundDeadlineLayer`].
#[derive(Debug, Clone)]
pub struct InboundDeadline<S> {
    inner: S,
}

impl<S> InboundDeadline<S> {
    inner_accessors!(S, inner);
}

impl<S: Service<Request<B>>, B> Service<Request<B>> for InboundDeadline<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> S::Future {
        if let Some(asked) = Deadline::from_headers(request.headers()) {
            let extensions = request.extensions_mut();
            if let Some(earlier) = extensions.insert(asked).filter(|own| *own < asked) {
                extensions.insert(earlier);
            }
        }
        self.inner.call(request)
    }
}
