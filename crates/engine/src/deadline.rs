//! Deadlines from service to service: the header of an inbound request, and of each outbound attempt.
//!
//! [`InboundDeadlineLayer`] wraps a server. It reads a header and inserts a [`Deadline`] into the request's extensions.
//! Handlers [propagate](Deadline::propagate) it to outbound requests. [`Http::deadline_header`] writes the time left to
//! each attempt of such a request.
//!
//! [`Http::deadline_header`]: crate::Http::deadline_header

use std::task::{Context, Poll};

use http::Request;
use tower_layer::Layer;
use tower_service::Service;

use crate::accessors::inner_accessors;
use crate::call::deadline::Deadline;
pub use crate::call::deadline_header::DeadlineHeader;

/// A layer for servers that reads the time left from a header of each inbound request, and puts the [`Deadline`] into
/// the request's extensions.
///
/// A handler [propagates](Deadline::propagate) the deadline to its outbound calls. The layer works with every server
/// that is a tower `Service` of `http::Request`s. For axum, add it with `Router::layer`. A handler gets the inbound
/// extensions as an argument of type `http::Extensions`.
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
/// use reattempt::deadline::{DeadlineHeader, InboundDeadlineLayer};
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
/// let server = InboundDeadlineLayer::new(DeadlineHeader::envoy()).layer(handler);
/// let inbound = Request::builder().header("x-envoy-expected-rq-timeout-ms", "1500").body(()).unwrap();
/// assert!(server.oneshot(inbound).await.unwrap().into_body());
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct InboundDeadlineLayer {
    header: DeadlineHeader,
}

impl InboundDeadlineLayer {
    /// Creates a layer that reads this header.
    pub fn new(header: DeadlineHeader) -> Self {
        Self { header }
    }
}

impl<S> Layer<S> for InboundDeadlineLayer {
    type Service = InboundDeadline<S>;

    fn layer(&self, inner: S) -> InboundDeadline<S> {
        InboundDeadline { inner, header: self.header.clone() }
    }
}

/// The service of [`InboundDeadlineLayer`].
#[derive(Debug, Clone)]
pub struct InboundDeadline<S> {
    inner: S,
    header: DeadlineHeader,
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
        if let Some(asked) = self.header.read(request.headers()) {
            let extensions = request.extensions_mut();
            if let Some(earlier) = extensions.insert(asked).filter(|own: &Deadline| *own < asked) {
                extensions.insert(earlier);
            }
        }
        self.inner.call(request)
    }
}
