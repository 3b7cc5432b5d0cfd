//! The calls of a cell, and the clients that make them.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::budget::Unlimited;
use reattempt::schedule::Constant;
use reattempt::{RetryLayer, RetryPolicy};
use tower::util::BoxCloneService;
use tower::{BoxError, Service, ServiceBuilder};

use crate::fault_matrix::cell::{Kind, Library, Point, Version};
use crate::fault_matrix::exchange::Exchange;

/// Passes only when the test advances the clock.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;
pub(crate) type Calls = BoxCloneService<Call, Answer, BoxError>;

type Body = BoxBody<Bytes, Infallible>;

/// One call, by its number.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) number: usize,
    pub(crate) server: SocketAddr,
    pub(crate) exchange: Arc<Exchange>,
}

impl Call {
    fn head(&self) -> http::request::Builder {
        let request = Request::builder().uri(format!("http://{}/{}", self.server, self.number));
        match self.exchange.cell.kind {
            Kind::Get => request.method("GET"),
            Kind::PutStreamed => request.method("PUT"),
            Kind::Post => request.method("POST"),
            Kind::PostWithKey => request.method("POST").header("idempotency-key", "\"key\""),
        }
    }

    /// Returns two chunks. If the exchange fails between them, the second waits for the healthy
    /// server.
    fn stream(&self) -> Body {
        let exchange = Arc::clone(&self.exchange);
        let second = async move {
            if exchange.cell.point == Point::MidBody {
                exchange.healthy().await;
            }
            Ok(Frame::data(Bytes::from("world")))
        };
        let first = stream::iter([Ok(Frame::data(Bytes::from("hello ")))]);
        BodyExt::boxed(StreamBody::new(first.chain(stream::once(second))))
    }

    fn http(&self) -> Request<Body> {
        let body = match self.exchange.cell.kind {
            Kind::Get => Empty::new().boxed(),
            Kind::PutStreamed => self.stream(),
            Kind::Post | Kind::PostWithKey => Full::from("hello world").boxed(),
        };
        self.head().body(body).unwrap()
    }

    fn reqwest(&self) -> reqwest::Request {
        let body = match self.exchange.cell.kind {
            Kind::Get => reqwest::Body::default(),
            Kind::PutStreamed => reqwest::Body::wrap(self.stream()),
            Kind::Post | Kind::PostWithKey => "hello world".into(),
        };
        self.head().body(body).unwrap().try_into().unwrap()
    }
}

/// Returns a client whose only retries are the layer's.
pub(crate) fn client(exchange: &Arc<Exchange>) -> Calls {
    let policy = RetryPolicy::http()
        .backoff(Constant::immediate())
        .max_elapsed(None)
        .budget(Unlimited)
        .attempt_timeout(ATTEMPT_TIMEOUT);
    let http2 = exchange.cell.version == Version::Http2;
    match exchange.cell.library {
        Library::HyperUtil => {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let client = Client::builder(TokioExecutor::new()).http2_only(http2).build(connector);
            let calls = ServiceBuilder::new()
                .map_request(|call: Call| call.http())
                .map_response(|answer: Response<hyper::body::Incoming>| {
                    answer.map(|body| body.map_err(BoxError::from).boxed_unsync())
                })
                .layer(RetryLayer::new(policy))
                .service(Gate { inner: client, exchange: Arc::clone(exchange) });
            BoxCloneService::new(calls)
        }
        Library::Reqwest => {
            let builder = reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .retry(reqwest::retry::never());
            let builder = if http2 { builder.http2_prior_knowledge() } else { builder };
            let calls = ServiceBuilder::new()
                .map_request(|call: Call| call.reqwest())
                .map_response(|answer: reqwest::Response| {
                    Response::from(answer).map(|body| body.map_err(BoxError::from).boxed_unsync())
                })
                .layer(RetryLayer::new(policy.protocol(|http| http.redirects_below(false))))
                .service(Gate { inner: builder.build().unwrap(), exchange: Arc::clone(exchange) });
            BoxCloneService::new(calls)
        }
    }
}

/// Counts attempts, and holds each but the first of a call until the server is healthy.
#[derive(Clone)]
struct Gate<S> {
    inner: S,
    exchange: Arc<Exchange>,
}

impl<S, R> Service<R> for Gate<S>
where
    S: Service<R, Future: Send> + Clone + Send + 'static,
    R: Numbered + Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let exchange = Arc::clone(&self.exchange);
        Box::pin(async move {
            let _running = exchange.attempt(request.number()).await;
            inner.call(request).await
        })
    }
}

/// A request that names its call in its path.
trait Numbered {
    fn number(&self) -> usize;
}

impl<B> Numbered for Request<B> {
    fn number(&self) -> usize {
        self.uri().path().trim_start_matches('/').parse().unwrap()
    }
}

impl Numbered for reqwest::Request {
    fn number(&self) -> usize {
        self.url().path().trim_start_matches('/').parse().unwrap()
    }
}
