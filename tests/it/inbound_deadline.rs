//! A deadline that arrives with a call to a real server, axum's or tonic's. The calls of its handler through the retry
//! layer carry it on.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::routing::get;
use http::{Extensions, HeaderMap};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::deadline::InboundDeadlineLayer;
use reattempt::grpc::Grpc;
use reattempt::schedule::Constant;
use reattempt::{Deadline, Retry, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::codegen::BoxStream;
use tonic::metadata::MetadataValue;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tower::{Layer, ServiceExt};

/// A server, which stops when it is dropped.
struct Running(SocketAddr, JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.1.abort();
    }
}

impl Running {
    fn url(&self) -> String {
        format!("http://{}", self.0)
    }

    fn channel(&self) -> Channel {
        Endpoint::from_shared(self.url()).unwrap().connect_lazy()
    }
}

type Told = Arc<Mutex<Vec<Option<String>>>>;

/// Starts a health service that fails the first of each two calls, and records their
/// `grpc-timeout`.
async fn upstream() -> (Running, Told) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let told = Told::default();
    let noted = Arc::clone(&told);
    let note = InterceptorLayer::new(move |call: Request<()>| {
        let mut told = noted.lock().unwrap();
        let timeout = call.metadata().get("grpc-timeout");
        told.push(timeout.map(|timeout| timeout.to_str().unwrap().to_owned()));
        if told.len() % 2 == 1 { Err(Status::unavailable("starting")) } else { Ok(call) }
    });
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(note).add_service(health);
    let serving = server.serve_with_incoming(TcpIncoming::from(listener));
    (Running(address, tokio::spawn(async move { serving.await.unwrap() })), told)
}

/// The state of the handlers.
#[derive(Clone)]
struct App {
    client: HealthClient<Retry<Channel, RetryPolicy<Grpc, Constant>>>,
    /// The time left of each call's deadline when its handler began.
    left: Told,
}

impl App {
    fn of(upstream: &Running) -> Self {
        let policy = RetryPolicy::grpc().repeatable(true).backoff(Constant::immediate());
        let client = HealthClient::new(RetryLayer::new(policy).layer(upstream.channel()));
        Self { client, left: Told::default() }
    }

    /// The common part of both handlers.
    async fn ask(&self, inbound: &Extensions) -> Result<HealthCheckResponse, Status> {
        let left = inbound.get::<Deadline>().map(|deadline| {
            let mut headers = HeaderMap::new();
            deadline.write_to(&mut headers);
            headers["grpc-timeout"].to_str().unwrap().to_owned()
        });
        self.left.lock().unwrap().push(left);
        let mut outbound = Request::new(HealthCheckRequest::default());
        Deadline::propagate(inbound, outbound.extensions_mut());
        Ok(self.client.clone().check(outbound).await?.into_inner())
    }
}

#[tonic::async_trait]
impl Health for App {
    type WatchStream = BoxStream<HealthCheckResponse>;

    async fn check(&self, inbound: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        self.ask(inbound.extensions()).await.map(Response::new)
    }

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("not asked for"))
    }
}

/// The field in microseconds, which is its unit at this size.
fn micros(field: &Option<String>) -> u64 {
    field.as_ref().unwrap().strip_suffix('u').unwrap().parse().unwrap()
}

/// Checks two inbound calls, one with 90 seconds and one without a limit.
fn check(left: &Told, told: &Told) {
    let (left, told) = (left.lock().unwrap(), told.lock().unwrap());
    let [first, second, none, and_none] = &told[..] else { panic!("{told:?}") };
    assert!(micros(&left[0]) < 90_000_000);
    assert!(micros(first) <= micros(&left[0]), "{first:?} of {left:?}");
    assert!(micros(second) < micros(first), "the second attempt has less: {told:?}");
    assert_eq!((&left[1], none, and_none), (&None, &None, &None));
}

// DL-2
#[tokio::test]
async fn dl_2_from_a_tonic_server() {
    let (upstream, told) = upstream().await;
    let app = App::of(&upstream);
    let left = Arc::clone(&app.left);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = Server::builder().layer(InboundDeadlineLayer::grpc()).add_service(HealthServer::new(app));
    let serving = server.serve_with_incoming(TcpIncoming::from(listener));
    let server = Running(address, tokio::spawn(async move { serving.await.unwrap() }));
    let mut caller = HealthClient::new(server.channel());
    let mut inbound = Request::new(HealthCheckRequest::default());
    inbound.metadata_mut().insert("grpc-timeout", MetadataValue::from_static("90S"));
    caller.check(inbound).await.unwrap();
    caller.check(HealthCheckRequest::default()).await.unwrap();
    check(&left, &told);
}

// DL-2
#[tokio::test]
async fn dl_2_from_an_axum_server() {
    async fn handler(State(app): State<App>, inbound: Extensions) -> String {
        app.ask(&inbound).await.unwrap().status.to_string()
    }
    let (upstream, told) = upstream().await;
    let app = App::of(&upstream);
    let left = Arc::clone(&app.left);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().route("/", get(handler)).with_state(app).layer(InboundDeadlineLayer::grpc());
    let serving = async move { axum::serve(listener, router).await.unwrap() };
    let server = Running(address, tokio::spawn(serving));
    let caller = Client::builder(TokioExecutor::new()).build_http();
    for timeout in [Some("90S"), None] {
        let mut inbound = http::Request::get(server.url());
        if let Some(timeout) = timeout {
            inbound = inbound.header("grpc-timeout", timeout);
        }
        let inbound = inbound.body(Body::empty()).unwrap();
        assert_eq!(caller.clone().oneshot(inbound).await.unwrap().status(), 200);
    }
    check(&left, &told);
}
