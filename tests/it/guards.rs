//! Guards around real clients over loopback: refusals, and places that are released with the body.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::error::Answered;
use reattempt::fallback::{FallbackLayer, FellBack};
use reattempt::grpc::Grpc;
use reattempt::guard::handle::UsageExt;
use reattempt::guard::{Bulkhead, GuardLayer, Guarded, GuardedBody, Refused};
use reattempt::shed::ShedLayer;
use reattempt::{RetryLayer, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower::Layer;

type Hyper = Client<HttpConnector, Empty<Bytes>>;
type Feed = mpsc::Sender<&'static str>;

/// A server whose bodies the test feeds, one sender for each request.
struct Server {
    address: SocketAddr,
    feeds: mpsc::Receiver<Feed>,
    bulkhead: Bulkhead,
    client: Guarded<Hyper, Bulkhead>,
}

impl Server {
    async fn start() -> Self {
        let (opened, feeds) = mpsc::channel(8);
        let app = Router::new().fallback(async move || {
            let (feed, source) = mpsc::channel(8);
            opened.send(feed).await.unwrap();
            Body::from_stream(stream::unfold(source, async |mut source: mpsc::Receiver<_>| {
                let chunk: &str = source.recv().await?;
                Some((Ok::<_, Infallible>(chunk), source))
            }))
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, app).await });
        let bulkhead = Bulkhead::new(1);
        let client = Client::builder(TokioExecutor::new()).build_http();
        let client = GuardLayer::http(bulkhead.clone()).layer(client);
        Self { address, feeds, bulkhead, client }
    }

    async fn send(&self) -> Result<Response<GuardedBody<Incoming, Bulkhead>>, tower::BoxError> {
        let request = Request::get(format!("http://{}/", self.address)).body(Empty::new())?;
        timeout(Duration::from_secs(20), self.client.send(request)).await?
    }

    fn in_flight(&self) -> u32 {
        self.bulkhead.usage(self.address.to_string()).in_flight
    }
}

// G-10
#[tokio::test]
async fn hyper_place_ends_with_the_body() {
    let mut server = Server::start().await;
    let response = server.send().await.unwrap();
    let feed = server.feeds.recv().await.unwrap();
    assert_eq!(server.in_flight(), 1);
    let error = server.send().await.err().unwrap();
    assert!(error.is::<Refused>(), "{error}");
    assert!(server.feeds.try_recv().is_err(), "nothing was sent");

    feed.send("whole").await.unwrap();
    drop(feed);
    let body = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, "whole");
    assert_eq!(server.in_flight(), 0);
    assert_eq!(server.send().await.unwrap().status(), StatusCode::OK);
}

// G-10, G-11
#[tokio::test]
async fn hyper_place_ends_with_a_dropped_body() {
    let mut server = Server::start().await;
    let mut body = Box::pin(server.send().await.unwrap().into_body());
    let feed = server.feeds.recv().await.unwrap();
    feed.send("half").await.unwrap();
    assert!(body.frame().await.unwrap().is_ok());
    assert_eq!(server.in_flight(), 1);
    drop(body);
    assert_eq!(server.in_flight(), 0);
    assert_eq!(server.send().await.unwrap().status(), StatusCode::OK);
}

/// Answers with an upgrade to an echo of one line.
async fn upgrade(request: Request<Incoming>) -> Result<Response<Empty<Bytes>>, Infallible> {
    tokio::spawn(async move {
        let mut stream = TokioIo::new(hyper::upgrade::on(request).await.unwrap());
        let mut line = [0; 4];
        stream.read_exact(&mut line).await.unwrap();
        stream.write_all(&line).await.unwrap();
    });
    let head = Response::builder().status(101);
    let head = head.header(header::CONNECTION, "upgrade").header(header::UPGRADE, "echo");
    Ok(head.body(Empty::new()).unwrap())
}

// G-11
#[tokio::test]
async fn hyper_upgrade_holds_no_place() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (socket, _) = listener.accept().await.unwrap();
        let connection = http1::Builder::new();
        let served = connection.serve_connection(TokioIo::new(socket), service_fn(upgrade));
        served.with_upgrades().await.unwrap();
    });
    let bulkhead = Bulkhead::new(1);
    let client: Hyper = Client::builder(TokioExecutor::new()).build_http();
    let client = GuardLayer::http(bulkhead.clone()).layer(client);
    let request = Request::get(format!("http://{address}/"))
        .header(header::CONNECTION, "upgrade")
        .header(header::UPGRADE, "echo");
    let response = client.send(request.body(Empty::new()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::SWITCHING_PROTOCOLS);
    let mut stream = TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    assert_eq!(bulkhead.usage(address.to_string()).in_flight, 0);
    stream.write_all(b"line").await.unwrap();
    let mut line = [0; 4];
    timeout(Duration::from_secs(20), stream.read_exact(&mut line)).await.unwrap().unwrap();
    assert_eq!(&line, b"line");
}

/// Starts tonic's health service behind a layer.
macro_rules! health {
    ($layer:expr) => {{
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let reporter = HealthReporter::new();
        reporter.set_service_status("", tonic_health::ServingStatus::Serving).await;
        let health = HealthService::from_health_reporter(reporter);
        let server = tonic::transport::Server::builder()
            .layer($layer)
            .add_service(HealthServer::new(health))
            .serve_with_incoming(TcpIncoming::from(listener));
        tokio::spawn(server);
        Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
    }};
}

// G-10
#[tokio::test]
async fn tonic_place_ends_with_the_stream() {
    let channel: Channel = health!(tower::layer::util::Identity::new());
    let bulkhead = Bulkhead::new(1);
    let guarded: Guarded<Channel, Bulkhead, Grpc, Answered> = GuardLayer::grpc(bulkhead.clone()).layer(channel);
    let mut client = HealthClient::new(guarded);
    let in_flight = || bulkhead.usage("").in_flight;

    let mut stream = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    assert_eq!(in_flight(), 1);
    let refused = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.metadata().get("reattempt-refused").unwrap(), "bulkhead");
    drop(stream);
    assert_eq!(in_flight(), 0);
    client.check(HealthCheckRequest::default()).await.unwrap();
    assert_eq!(in_flight(), 0, "the trailers ended the place");
}

/// A connection that was refused proves that the call was not processed.
// G7
#[tokio::test]
async fn tonic_backup_answers_for_a_dead_server() {
    let unheard = TcpSocket::new_v4().unwrap();
    unheard.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let dead = format!("http://{}", unheard.local_addr().unwrap());
    let dead = Endpoint::from_shared(dead).unwrap().connect_lazy();
    let alive: Channel = health!(tower::layer::util::Identity::new());
    let retries = RetryLayer::new(RetryPolicy::grpc().max_attempts(1));
    for (first, backed) in [(dead, true), (alive.clone(), false)] {
        let backup = FallbackLayer::grpc_backup(retries.layer(alive.clone()));
        let mut client = HealthClient::new(backup.layer(retries.layer(first)));
        let call = async move { client.check(HealthCheckRequest::default()).await };
        let answer = timeout(Duration::from_secs(20), tokio::spawn(call)).await.unwrap().unwrap();
        let answer = answer.unwrap();
        assert_eq!(answer.extensions().get::<FellBack>().is_some(), backed);
        assert_eq!(answer.get_ref().status(), ServingStatus::Serving);
    }
}

// G9
#[tokio::test]
async fn tonic_server_sheds_with_a_pushback() {
    let channel: Channel = health!(ShedLayer::grpc(Bulkhead::new(1)));
    let mut client = HealthClient::new(channel);
    let mut stream = client.watch(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert!(stream.message().await.unwrap().is_some());
    let refused = client.check(HealthCheckRequest::default()).await.unwrap_err();
    assert_eq!(refused.code(), Code::ResourceExhausted);
    let pushback = refused.metadata().get("grpc-retry-pushback-ms").unwrap();
    let wait: u64 = pushback.to_str().unwrap().parse().unwrap();
    assert!((100..=60_000).contains(&wait), "{wait}");
    assert!(refused.metadata().get("reattempt-refused").is_none());
}
