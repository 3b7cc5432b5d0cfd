//! Handshakes with real clients and servers: they fail over and are retried, until the connection has switched.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::guard::handle::UsageExt;
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer};
use reattempt::standard::StandardLayer;
use reattempt::{ReplayBody, Report, RetryLayer};
use reattempt_reqwest_middleware::ReattemptMiddleware;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::timeout;
use tower::ServiceBuilder;

use crate::support::quick;

const HANGS: Duration = Duration::from_secs(20);

/// A server that refuses the first handshakes with this status, and then switches to an echo of four bytes.
#[derive(Clone)]
struct Echo {
    refusal: StatusCode,
    refusals: Arc<AtomicUsize>,
}

impl Echo {
    async fn start(refusals: usize, refusal: StatusCode) -> SocketAddr {
        let this = Self { refusal, refusals: Arc::new(refusals.into()) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let socket = TokioIo::new(listener.accept().await.unwrap().0);
                let this = this.clone();
                let service = service_fn(move |request| {
                    let answer = this.answer(request);
                    async { Ok::<_, Infallible>(answer) }
                });
                tokio::spawn(async move {
                    // The client may leave in any way.
                    let _ = http1::Builder::new().serve_connection(socket, service).with_upgrades().await;
                });
            }
        });
        address
    }

    /// Starts a server of HTTP/2 with extended CONNECT.
    async fn start_http2() -> SocketAddr {
        let this = Self { refusal: StatusCode::OK, refusals: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let socket = TokioIo::new(listener.accept().await.unwrap().0);
                let this = this.clone();
                let service = service_fn(move |request: Request<Incoming>| {
                    assert_eq!(request.extensions().get::<Protocol>().map(Protocol::as_str), Some("websocket"));
                    let answer = this.answer(request);
                    async { Ok::<_, Infallible>(answer) }
                });
                let mut builder = http2::Builder::new(TokioExecutor::new());
                builder.enable_connect_protocol();
                tokio::spawn(async move {
                    let _ = builder.serve_connection(socket, service).await;
                });
            }
        });
        address
    }

    fn answer(&self, request: Request<Incoming>) -> Response<Empty<Bytes>> {
        let mut response = Response::new(Empty::new());
        if self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok() {
            *response.status_mut() = self.refusal;
            return response;
        }
        if request.method() != Method::CONNECT {
            *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
            response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("upgrade"));
            response.headers_mut().insert(header::UPGRADE, header::HeaderValue::from_static("echo"));
        }
        tokio::spawn(async move {
            let mut stream = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
            let mut line = [0; 4];
            stream.read_exact(&mut line).await.unwrap();
            stream.write_all(&line).await.unwrap();
        });
        response
    }
}

/// Returns a port that refuses connections as long as the socket exists.
fn dead() -> (TcpSocket, SocketAddr) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    (socket, address)
}

fn hyper<B>() -> Client<HttpConnector, B>
where
    B: http_body::Body<Data = Bytes> + Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

fn upgrade(address: SocketAddr) -> Request<Empty<Bytes>> {
    let request = Request::get(format!("http://{address}/chat"));
    let request = request.header(header::CONNECTION, "upgrade").header(header::UPGRADE, "echo");
    request.body(Empty::new()).unwrap()
}

/// Sends four bytes through the switched connection.
async fn echoes(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    stream.write_all(b"line").await.unwrap();
    let mut line = [0; 4];
    timeout(HANGS, stream.read_exact(&mut line)).await.unwrap().unwrap();
    assert_eq!(&line, b"line");
}

async fn switched<B>(response: Response<B>) -> impl AsyncRead + AsyncWrite + Unpin {
    TokioIo::new(timeout(HANGS, hyper::upgrade::on(response)).await.unwrap().unwrap())
}

/// The first of two servers refuses the connection. A new client meets it in half of the handshakes.
// field 16
#[tokio::test]
async fn handshakes_fail_over() {
    let well = Echo::start(0, StatusCode::OK).await;
    let (_socket, dead) = dead();
    for _ in 0..10 {
        let servers = EndpointsLayer::http([format!("http://{dead}"), format!("http://{well}")]).unwrap();
        let client =
            ServiceBuilder::new().layer(RetryLayer::new(quick().boxed_errors())).layer(servers).service(hyper());
        let response = client.send(upgrade(dead)).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        echoes(switched(response).await).await;
    }
}

/// The place among the calls in flight ends when the connection is handed over.
// G-11
#[tokio::test]
async fn handshakes_pass_the_standard_stack() {
    let well = Echo::start(0, StatusCode::OK).await;
    let (_socket, dead) = dead();
    for _ in 0..10 {
        let servers = Endpoints::urls([format!("http://{dead}"), format!("http://{well}")]).unwrap();
        let bulkhead = Bulkhead::new(1);
        let stack = StandardLayer::http().limits(CircuitBreaker::rate(), bulkhead.clone()).endpoints(servers);
        let endpoints = stack.endpoints_handle();
        let client = ServiceBuilder::new().layer(stack).service(hyper());
        let response = client.send(upgrade(dead)).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        let stream = switched(response).await;
        assert!(endpoints.view().iter().all(|server| server.in_flight == 0));
        assert_eq!(bulkhead.usage(well.to_string()).in_flight, 0);
        echoes(stream).await;
    }
}

#[tokio::test]
async fn refused_handshake_is_retried() {
    let server = Echo::start(2, StatusCode::SERVICE_UNAVAILABLE).await;
    let client = ServiceBuilder::new().layer(RetryLayer::new(quick())).service(hyper());
    let response = client.send(upgrade(server)).await.unwrap();
    assert_eq!(Report::of(&response).map(Report::retries), Some(2));
    echoes(switched(response).await).await;
}

/// A CONNECT request is not idempotent, so it is sent again only after a refusal that proves something.
#[tokio::test]
async fn tunnel_is_retried_with_proof() {
    for (refusal, expected) in [(StatusCode::TOO_MANY_REQUESTS, true), (StatusCode::SERVICE_UNAVAILABLE, false)] {
        let server = Echo::start(1, refusal).await;
        let bulkhead = Bulkhead::new(1);
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(quick().boxed_errors()))
            .layer(GuardLayer::http(bulkhead.clone()))
            .service(hyper());
        let request = Request::builder().method(Method::CONNECT).uri(server.to_string()).body(Empty::new()).unwrap();
        let response = client.send(request).await.unwrap();
        if !expected {
            assert_eq!(response.status(), refusal);
            continue;
        }
        assert_eq!(response.status(), StatusCode::OK);
        let stream = switched(response).await;
        assert_eq!(bulkhead.usage(server.to_string()).in_flight, 0);
        echoes(stream).await;
    }
}

#[tokio::test]
async fn extended_connect_fails_over() {
    let well = Echo::start_http2().await;
    let (_socket, dead) = dead();
    for _ in 0..10 {
        let servers = EndpointsLayer::http([format!("http://{dead}"), format!("http://{well}")]).unwrap();
        let http: Client<HttpConnector, ReplayBody<Empty<Bytes>>> =
            Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        let client = ServiceBuilder::new().layer(RetryLayer::new(quick().boxed_errors())).layer(servers).service(http);
        let request = Request::builder().method(Method::CONNECT).uri(format!("http://{dead}/chat"));
        let request = request.extension(Protocol::from_static("websocket")).body(Empty::new()).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        echoes(switched(response).await).await;
    }
}

fn reqwest() -> reqwest::Client {
    reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy().build().unwrap()
}

#[tokio::test]
async fn reqwest_handshakes_fail_over() {
    let well = Echo::start(0, StatusCode::OK).await;
    let (_socket, dead) = dead();
    for _ in 0..10 {
        let servers = EndpointsLayer::http([format!("http://{dead}"), format!("http://{well}")]).unwrap();
        let client =
            ServiceBuilder::new().layer(RetryLayer::new(quick().boxed_errors())).layer(servers).service(reqwest());
        let request = reqwest::Request::try_from(upgrade(dead).map(|_| "")).unwrap();
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
        echoes(response.upgrade().await.unwrap()).await;
    }
}

#[tokio::test]
async fn middleware_retries_handshakes() {
    let server = Echo::start(2, StatusCode::SERVICE_UNAVAILABLE).await;
    let client = reqwest_middleware::ClientBuilder::new(reqwest()).with(ReattemptMiddleware::new(quick())).build();
    let request = client.get(format!("http://{server}/chat"));
    let request = request.header(header::CONNECTION, "upgrade").header(header::UPGRADE, "echo");
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    echoes(response.upgrade().await.unwrap()).await;
}
