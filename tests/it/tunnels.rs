//! Proxies, resolvers and connectors that fail before they connect: nothing was sent, so every request is retried, and
//! no failure counts against the server.

use std::iter::{Once, once};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::support::quick;
use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
use reattempt::guard::{CircuitBreaker, GuardLayer};
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, ReplayBody, Report, RetryLayer, RetryPolicy, StopReason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::{BoxError, Layer, ServiceExt, service_fn};

/// The bound of a test, which only a hang exceeds.
const BOUND: Duration = Duration::from_secs(20);

/// The part of a proxy or server between two connections.
type Head = (usize, TcpStream);

async fn accept_each<Answer: Future<Output = ()> + Send>(
    answer: impl Fn(Head) -> Answer + Clone + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (connection, _) = listener.accept().await.unwrap();
            let answer = answer.clone();
            tokio::spawn(async move { answer((number, connection)).await });
        }
    });
    address
}

/// Reads a head without a body.
async fn read_head(connection: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match connection.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => break,
        }
    }
    String::from_utf8(head).unwrap()
}

/// A proxy that answers the CONNECT of the first connection with this and hangs up. It opens every other tunnel, and is
/// the server behind it, too.
async fn proxy_that_first(says: &'static str) -> SocketAddr {
    accept_each(move |(number, mut connection)| async move {
        assert!(read_head(&mut connection).await.starts_with("CONNECT server.example:443 "));
        if number == 0 {
            connection.write_all(says.as_bytes()).await.unwrap();
            return;
        }
        connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        read_head(&mut connection).await;
        connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    })
    .await
}

fn tunnel(proxy: SocketAddr) -> Tunnel<HttpConnector> {
    Tunnel::new(format!("http://{proxy}").parse().unwrap(), HttpConnector::new())
}

fn request(method: &Method) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri("http://server.example/").body(Full::default()).unwrap()
}

/// Returns the status and the number of attempts of a call.
async fn call(method: &Method, connector: impl Connect + Clone + Send + Sync + 'static) -> (StatusCode, usize) {
    let client: Client<_, ReplayBody<Full<Bytes>>> = Client::builder(TokioExecutor::new()).build(connector);
    let call = RetryLayer::new(quick()).layer(client).oneshot(request(method));
    let response = tokio::time::timeout(BOUND, call).await.unwrap().unwrap();
    (response.status(), Report::of(&response).map_or(1, |report| report.attempts().len()))
}

// field 11, trap 63
#[tokio::test]
async fn failed_tunnel_is_retried_for_all() {
    for says in
        ["HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1 429 Too Many\r\n\r\n", "", "HTTP/1.1 2", "\0\r\n"]
    {
        for method in [Method::GET, Method::POST] {
            let proxy = proxy_that_first(says).await;
            assert_eq!(call(&method, tunnel(proxy)).await, (StatusCode::NO_CONTENT, 2), "{method} after {says:?}");
        }
    }
}

/// A proxy that wants credentials wants them again.
// trap 63
#[tokio::test]
async fn tunnel_without_credentials_ends_call() {
    let proxy = proxy_that_first("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    let client: Client<_, ReplayBody<Full<Bytes>>> = Client::builder(TokioExecutor::new()).build(tunnel(proxy));
    let slot = ReportSlot::default();
    let mut get = request(&Method::GET);
    get.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let call = RetryLayer::new(quick()).layer(client).oneshot(get);
    tokio::time::timeout(BOUND, call).await.unwrap().unwrap_err();
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Permanent);
}

/// The proxy may have passed on a request whose attempt is cut off while the tunnel seems to hang.
// trap 24
#[tokio::test]
async fn hanging_tunnel_proves_nothing() {
    for (method, attempts) in [(Method::GET, 3), (Method::POST, 1)] {
        let proxy = accept_each(|(_, mut connection)| async move {
            let _ = connection.read_to_end(&mut Vec::new()).await;
        });
        let client: Client<_, ReplayBody<Full<Bytes>>> =
            Client::builder(TokioExecutor::new()).build(tunnel(proxy.await));
        let policy = quick().attempt_timeout(Duration::from_millis(50));
        let slot = ReportSlot::default();
        let mut request = request(&method);
        request.extensions_mut().insert(CallOptions::new().report_to(&slot));
        let call = RetryLayer::new(policy).layer(client).oneshot(request);
        tokio::time::timeout(BOUND, call).await.unwrap().unwrap_err();
        assert_eq!(slot.take().unwrap().attempts().len(), attempts, "{method}");
    }
}

/// A proxy or resolver that fails does not open the breaker of a server.
// C-7, trap 62
#[tokio::test]
async fn breaker_is_not_opened_by_the_way() {
    async fn opens(connector: impl Connect + Clone + Send + Sync + 'static) -> bool {
        let client: Client<_, ReplayBody<Full<Bytes>>> = Client::builder(TokioExecutor::new()).build(connector);
        let breaker = CircuitBreaker::rate().consecutive_failures(5);
        let client = GuardLayer::http(breaker.clone()).layer(client);
        let mut opens = false;
        for _ in 0..100 {
            let request = request(&Method::GET).map(ReplayBody::passthrough);
            tokio::time::timeout(BOUND, client.clone().oneshot(request)).await.unwrap().unwrap_err();
            // The breaker's clock moves on, and the bound is one of real time.
            tokio::time::pause();
            tokio::time::advance(Duration::from_millis(100)).await;
            tokio::time::resume();
            opens |= breaker.state("server.example") != BreakerState::Closed;
        }
        opens
    }
    let refuses = accept_each(|(_, mut connection)| async move {
        read_head(&mut connection).await;
        connection.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").await.unwrap();
    });
    assert!(!opens(tunnel(refuses.await)).await);
    let resolver = service_fn(|_: Name| async { Err::<Once<SocketAddr>, BoxError>("timed out".into()) });
    assert!(!opens(HttpConnector::new_with_resolver(resolver)).await);
    // The same failures of the connector itself are the server's.
    let fails = service_fn(|_: http::Uri| std::future::ready(Err::<TokioIo<TcpStream>, _>(BoxError::from("no route"))));
    assert!(opens(fails).await);
}

// field 12, trap 63
#[tokio::test]
async fn failed_resolver_is_retried_for_all() {
    for method in [Method::GET, Method::POST] {
        let server = accept_each(|(_, mut connection)| async move {
            read_head(&mut connection).await;
            connection.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
        });
        let (server, calls) = (server.await, Arc::new(AtomicUsize::new(0)));
        let resolver = service_fn(move |_: Name| {
            let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            async move { if first { Err(BoxError::from("timed out")) } else { Ok(once(server)) } }
        });
        let answer = call(&method, HttpConnector::new_with_resolver(resolver)).await;
        assert_eq!(answer, (StatusCode::NO_CONTENT, 2), "{method}");
    }
}

/// A gRPC call is not sent without a connection, so an unmarked one is retried, too. The connector may fail with a
/// status, such as that of a service which it asks for credentials.
// TR-1, trap 63
#[tokio::test]
async fn failed_channel_connector_is_retried() {
    let errors: [fn() -> BoxError; 2] =
        [|| "the mesh is not ready".into(), || Box::new(tonic::Status::permission_denied("no token"))];
    for error in errors {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let connector = service_fn(move |_: http::Uri| {
            counted.fetch_add(1, Ordering::Relaxed);
            std::future::ready(Err::<TokioIo<TcpStream>, _>(error()))
        });
        let channel = Endpoint::from_static("http://server.example").connect_with_connector_lazy(connector);
        let mut client =
            HealthClient::new(RetryLayer::new(RetryPolicy::grpc().backoff(Constant::immediate())).layer(channel));
        let call = client.check(HealthCheckRequest::default());
        let status = tokio::time::timeout(BOUND, call).await.unwrap().unwrap_err();
        assert_eq!(calls.load(Ordering::Relaxed), 3, "{status:?}");
    }
}
