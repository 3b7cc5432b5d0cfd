//! A PUT of 1 KiB with a real client over loopback HTTP/1.1.
//!
//! An operation makes a fresh request, sends it and reads the answer's body. The server is another
//! process, so only the client's instructions are counted: those of the contender, the connection
//! and the runtime, on one thread.

pub(super) mod in_flight;
mod server;

use std::error::Error;

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::{ReplayBody, Retry};
use reqwest_middleware::ClientWithMiddleware;
use tokio::runtime::{Builder, Runtime};
use tower::{Layer, Service, ServiceExt};

pub use server::serve;

use server::{ANSWER, FLAKY, STEADY, Server};

use super::{Row, Work, above, alone};
use crate::contenders::{by_hand, by_hand_with_bucket, ours, reqwest_retry_usual, resilience};
use crate::requests::{Body, fresh_to, kilobyte, reqwest_fresh_to};

pub(super) const ROWS: &[Row] = &[
    Row {
        name: "wire",
        title: "1 KiB PUT over loopback HTTP/1.1, hyper-util",
        operations: 300,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || steady(hyper::<Body>)),
            above("ours", "bare", || steady(|| ours(hyper::<ReplayBody<Body>>()))),
            above("tower", "bare", || steady(|| by_hand(hyper::<Body>()))),
            above("tower-bucket", "bare", || steady(|| by_hand_with_bucket(hyper::<Body>()))),
            above("tower-resilience", "bare", || steady(|| resilience().layer(hyper::<Body>()))),
        ],
    },
    Row {
        name: "wire-h2",
        title: "1 KiB PUT over loopback HTTP/2, hyper-util",
        operations: 1500,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || steady(hyper_h2::<Body>)),
            above("ours", "bare", || steady(|| ours(hyper_h2::<ReplayBody<Body>>()))),
            above("tower", "bare", || steady(|| by_hand(hyper_h2::<Body>()))),
            above("tower-bucket", "bare", || steady(|| by_hand_with_bucket(hyper_h2::<Body>()))),
            above("tower-resilience", "bare", || steady(|| resilience().layer(hyper_h2::<Body>()))),
        ],
    },
    Row {
        name: "wire-reqwest",
        title: "1 KiB PUT over loopback HTTP/1.1, reqwest",
        operations: 300,
        counted: true,
        timed: false,
        contenders: &[
            alone("bare", || with_reqwest(STEADY, bare_reqwest())),
            above("ours", "bare", || with_reqwest(STEADY, on_reqwest())),
            above("reqwest-own", "bare", || with_reqwest(STEADY, reqwest_own())),
            above("reqwest-retry", "bare", || with_reqwest(STEADY, reqwest_retry_usual(bare_reqwest()).build())),
        ],
    },
];

fn hyper<B>() -> Client<HttpConnector, B>
where
    B: http_body::Body + Send,
    B::Data: Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

fn hyper_h2<B>() -> Client<HttpConnector, B>
where
    B: http_body::Body + Send,
    B::Data: Send,
{
    // A request is two writes; the second would wait for the acknowledgement of the first.
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).http2_only(true).build(connector)
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn steady<S, B>(client: fn() -> S) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    with_service(STEADY, client)
}

/// Sends one request after another to the server and reads each response, which must be 200.
fn with_service<S, B>(path: &'static str, client: fn() -> S) -> Work
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (server, runtime, mut service) = (Server::start(), runtime(), client());
    Box::new(move |operations| {
        let uri = server.address(path);
        runtime.block_on(async {
            for _ in 0..operations {
                assert_eq!(exchange(&mut service, &uri).await, StatusCode::OK);
            }
        });
    })
}

/// Sends one request and reads the response.
async fn exchange<S, B>(service: &mut S, uri: &str) -> StatusCode
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: Into<Box<dyn Error + Send + Sync>>,
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let service = service.ready().await.map_err(Into::into).unwrap();
    let answer = service.call(fresh_to(uri, Full::new(kilobyte()))).await.map_err(Into::into).unwrap();
    let status = answer.status();
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), ANSWER);
    status
}

/// A common interface of the wrappers around reqwest.
trait Reqwest {
    fn execute(&mut self, request: reqwest::Request) -> impl Future<Output = reqwest::Response>;
}

impl Reqwest for reqwest::Client {
    async fn execute(&mut self, request: reqwest::Request) -> reqwest::Response {
        reqwest::Client::execute(self, request).await.unwrap()
    }
}

impl Reqwest for Retry<reqwest::Client> {
    async fn execute(&mut self, request: reqwest::Request) -> reqwest::Response {
        self.ready().await.unwrap().call(request).await.unwrap()
    }
}

impl Reqwest for ClientWithMiddleware {
    async fn execute(&mut self, request: reqwest::Request) -> reqwest::Response {
        ClientWithMiddleware::execute(self, request).await.unwrap()
    }
}

/// Returns reqwest's client without its own retries.
fn bare_reqwest() -> reqwest::Client {
    let never = reqwest::retry::never().max_retries_per_request(0);
    reqwest::Client::builder().retry(never).build().unwrap()
}

fn on_reqwest() -> Retry<reqwest::Client> {
    ours(bare_reqwest())
}

/// Returns reqwest's client with its own retries: of the same failures, with its usual budget. It
/// has no backoff.
fn reqwest_own() -> reqwest::Client {
    let retry = reqwest::retry::for_host("127.0.0.1").classify_fn(|attempt| {
        let failed = attempt.status().is_none_or(|status| status.is_server_error());
        if failed { attempt.retryable() } else { attempt.success() }
    });
    reqwest::Client::builder().retry(retry).build().unwrap()
}

fn with_reqwest(path: &'static str, mut client: impl Reqwest + 'static) -> Work {
    let (server, runtime) = (Server::start(), runtime());
    Box::new(move |operations| {
        let url = server.address(path);
        runtime.block_on(async {
            for _ in 0..operations {
                let answer = client.execute(reqwest_fresh_to(&url)).await;
                assert_eq!(answer.status(), StatusCode::OK);
                assert_eq!(answer.bytes().await.unwrap(), ANSWER);
            }
        });
    })
}

/// Checks that every contender succeeds with a server that fails at first, and that bare clients
/// fail.
pub(super) fn check() {
    with_service(FLAKY, || ours(hyper::<ReplayBody<Body>>()))(1);
    with_service(FLAKY, || by_hand(hyper::<Body>()))(1);
    with_service(FLAKY, || ours(hyper_h2::<ReplayBody<Body>>()))(1);
    with_service(FLAKY, || by_hand_with_bucket(hyper_h2::<Body>()))(1);
    with_service(FLAKY, || resilience().layer(hyper::<Body>()))(1);
    with_reqwest(FLAKY, on_reqwest())(1);
    with_reqwest(FLAKY, reqwest_own())(1);
    with_reqwest(FLAKY, reqwest_retry_usual(bare_reqwest()).build())(1);
    let server = Server::start();
    let uri = server.address(FLAKY);
    runtime().block_on(async {
        let failed = exchange(&mut hyper::<Body>(), &uri).await;
        assert_eq!(failed, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(bare_reqwest().execute(reqwest_fresh_to(&uri)).await.unwrap().status(), 200);
        let failed = bare_reqwest().execute(reqwest_fresh_to(&uri)).await.unwrap();
        assert_eq!(failed.status(), StatusCode::SERVICE_UNAVAILABLE);
    });
}
