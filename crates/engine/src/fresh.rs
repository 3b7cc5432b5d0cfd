//! Retries on new connections, after a pooled HTTP/1 connection was lost.
//!
//! A server, a NAT or a load balancer may have dropped every idle connection of a pool without a sign. Each attempt
//! then meets another dead connection, so a call loses all its attempts although the server is well. A layer cannot
//! prevent this, because hyper-util and reqwest do not show whether a connection was reused. With [`FreshRetries`],
//! such a retry is sent by a second client, which has no pool.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use http::Version;
use pin_project_lite::pin_project;
use tower_service::Service;

use crate::call::frame;
use crate::call::in_use;
use crate::protocol::sealed;

/// A client of two: one with a pool of connections, and one without, for retries after a lost connection.
///
/// | attempt | sent by |
/// |---|---|
/// | the first of a call | the pooled client |
/// | a retry after the loss of an HTTP/1 connection, or after a 408 | the client without a pool, on a new connection |
/// | any other retry, such as after a 503 or a refused connection | the pooled client |
/// | everything while the pooled client's responses come over HTTP/2 | the pooled client |
///
/// A loss on a connection that served before shows little about the server. Neither does a 408, which servers also
/// send on idle connections (RFC 9110 §15.5.9). Over HTTP/2 one connection has all calls, and the next attempt opens a
/// new one anyway.
///
/// The retry layer alone decides whether a request is repeated. So a POST without a key still fails on a dead
/// connection. Limit the idle time to avoid that: [the guide][idle-connections] names the settings.
///
/// Place this service inside a [`RetryLayer`](crate::RetryLayer) or the [standard stack][standard], around the
/// two clients. The retry layer marks such a retry separately from the request, within its `call`. A layer between them
/// that sends later, such as tower's `Buffer`, loses the mark, and the pooled client sends the retry. Hedges and the
/// [stock policy](crate::RetryPolicy::stock) set no mark.
///
/// A response of the client without a pool closes its connection at its end. Both clients must have the same types.
///
/// ```
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::fresh::FreshRetries;
/// use reattempt::standard::StandardLayer;
/// use tower::ServiceBuilder;
///
/// let pooled = Client::builder(TokioExecutor::new());
/// let mut unpooled = pooled.clone();
/// unpooled.pool_max_idle_per_host(0);
/// let client = ServiceBuilder::new()
///     .layer(StandardLayer::http())
///     .service(FreshRetries::new(pooled.build_http(), unpooled.build_http()));
/// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
/// ```
///
/// # Cancel safety
///
/// Dropping the future drops the attempt of the client that sent it.
///
/// [idle-connections]: https://docs.rs/reattempt/latest/reattempt/guide/hyper/index.html#idle-connections
/// [standard]: https://docs.rs/reattempt/latest/reattempt/standard/index.html
#[derive(Debug, Clone)]
pub struct FreshRetries<P, F = P> {
    pooled: P,
    fresh: F,
    /// `true` if the last response of the pooled client came over HTTP/1. Without any, no connection was reused.
    http1: Arc<AtomicBool>,
}

impl<P, F> FreshRetries<P, F> {
    /// Creates the client from one with a pool and one without. In hyper-util and reqwest, a client has no pool if
    /// `pool_max_idle_per_host` is 0.
    pub fn new(pooled: P, fresh: F) -> Self {
        in_use::FRESH_RETRIES.begin();
        Self { pooled, fresh, http1: Arc::default() }
    }
}

impl<P, F, Request> Service<Request> for FreshRetries<P, F>
where
    P: Service<Request, Response: Versioned>,
    F: Service<Request, Response = P::Response, Error = P::Error> + Clone,
{
    type Response = P::Response;
    type Error = P::Error;
    type Future = ResponseFuture<P::Future, F, Request>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), P::Error>> {
        self.pooled.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let sent = if frame::layer_terms().fresh && self.http1.load(Ordering::Relaxed) {
            Sent::Readying { service: self.fresh.clone(), request: Some(request) }
        } else {
            Sent::Pooled { response: self.pooled.call(request), http1: Arc::clone(&self.http1) }
        };
        ResponseFuture { sent }
    }
}

pin_project! {
    /// The future of an attempt of [`FreshRetries`].
    pub struct ResponseFuture<P, F: Service<Request>, Request> {
        #[pin]
        sent: Sent<P, F, Request>,
    }
}

pin_project! {
    #[project = SentView]
    enum Sent<P, F: Service<Request>, Request> {
        Pooled { #[pin] response: P, http1: Arc<AtomicBool> },
        Readying { service: F, request: Option<Request> },
        Fresh { #[pin] response: F::Future },
    }
}

impl<P, F: Service<Request>, Request> fmt::Debug for ResponseFuture<P, F, Request> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<P, F, Request> Future for ResponseFuture<P, F, Request>
where
    P: Future<Output = Result<F::Response, F::Error>>,
    F: Service<Request, Response: Versioned>,
{
    type Output = Result<F::Response, F::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut sent = self.project().sent;
        loop {
            match sent.as_mut().project() {
                SentView::Pooled { response, http1 } => {
                    let result = ready!(response.poll(cx));
                    if let Ok(response) = &result {
                        let is_http1 = response.version() < Version::HTTP_2;
                        // Not written each time, because all calls share the value.
                        if http1.load(Ordering::Relaxed) != is_http1 {
                            http1.store(is_http1, Ordering::Relaxed);
                        }
                    }
                    return Poll::Ready(result);
                }
                SentView::Readying { service, request } => {
                    ready!(service.poll_ready(cx))?;
                    // The request is taken only here, and the state changes at once.
                    let Some(request) = request.take() else { return Poll::Pending };
                    let response = service.call(request);
                    sent.set(Sent::Fresh { response });
                }
                SentView::Fresh { response } => return response.poll(cx),
            }
        }
    }
}

/// A response with an HTTP version: `http::Response` and `reqwest::Response`. Sealed.
pub trait Versioned: sealed::Sealed {
    #[doc(hidden)]
    fn version(&self) -> Version;
}

impl<B> Versioned for http::Response<B> {
    fn version(&self) -> Version {
        self.version()
    }
}

#[cfg(feature = "reqwest")]
impl Versioned for reqwest::Response {
    fn version(&self) -> Version {
        self.version()
    }
}
