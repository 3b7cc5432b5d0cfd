//! A tonic `Channel` under the retry layer and a generated client, against a real server.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt::grpc::Grpc;
use reattempt::observe::Event;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::schedule::{Constant, FailureKind};
use reattempt::{CallOptions, Report, Retry, RetryLayer, RetryPolicy, StopReason};
use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus as Answered;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::{HealthReporter, HealthService};
use tower::{Layer, ServiceBuilder};

/// A health service that first answers with the statuses of its script, without a body.
struct Server {
    address: SocketAddr,
    reporter: HealthReporter,
    /// The `grpc-previous-rpc-attempts` of every call.
    seen: Arc<Mutex<Vec<Option<String>>>>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(script: impl IntoIterator<Item = Status>) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), script)
    }

    fn on(listener: TcpListener, script: impl IntoIterator<Item = Status>) -> Self {
        let address = listener.local_addr().unwrap();
        let reporter = HealthReporter::new();
        let seen = Arc::<Mutex<Vec<_>>>::default();
        let script = Arc::new(Mutex::new(script.into_iter().collect::<VecDeque<_>>()));
        let noted = Arc::clone(&seen);
        let interceptor = InterceptorLayer::new(move |call: Request<()>| {
            let previous = call.metadata().get("grpc-previous-rpc-attempts");
            noted.lock().unwrap().push(previous.map(|number| number.to_str().unwrap().to_owned()));
            script.lock().unwrap().pop_front().map_or(Ok(call), Err)
        });
        let health = HealthService::from_health_reporter(reporter.clone());
        let server = tonic::transport::Server::builder()
            .layer(interceptor)
            .add_service(tonic_health::pb::health_server::HealthServer::new(health))
            .serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async move { server.await.unwrap() });
        Self { address, reporter, seen, task }
    }

    fn calls(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

/// Returns a policy with a short delay, for calls that may be repeated.
fn quick() -> RetryPolicy<Grpc, Constant> {
    RetryPolicy::grpc().repeatable(true).backoff(Constant::new(Duration::from_millis(10)))
}

type Quick = Retry<Channel, RetryPolicy<Grpc, Constant>>;

/// Returns a client for one server, and the slot of its reports.
fn client(server: &Server) -> (HealthClient<Quick>, ReportSlot) {
    client_of(server, quick())
}

/// Returns a client with this policy, and the slot of its reports.
fn client_of(server: &Server, policy: RetryPolicy<Grpc, Constant>) -> (HealthClient<Quick>, ReportSlot) {
    let slot = ReportSlot::default();
    let retry = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(channel(server.address));
    (HealthClient::new(retry.with_options(CallOptions::new().report_to(&slot))), slot)
}

fn check(service: &str) -> HealthCheckRequest {
    HealthCheckRequest { service: service.to_owned() }
}

fn unavailable(pushback: &'static str) -> Status {
    let mut status = Status::unavailable("busy");
    status.metadata_mut().insert("grpc-retry-pushback-ms", pushback.parse().unwrap());
    status
}

// TN-1
#[tokio::test]
async fn tn_1_default_layer_fits_generated_client() {
    let server = Server::start([Status::unavailable("one"), Status::resource_exhausted("two")]).await;
    let layer = RetryLayer::new(RetryPolicy::grpc().repeatable(true));
    let channel: Retry<Channel, RetryPolicy<Grpc>> =
        ServiceBuilder::new().layer(layer).service(channel(server.address));
    let mut client = HealthClient::new(channel);
    let answer = tokio::spawn(async move { client.check(check("")).await }).await.unwrap().unwrap();
    assert_eq!(answer.extensions().get::<Report>().unwrap().retries(), 2);
    assert_eq!(answer.into_inner().status(), Answered::Serving);
    let previous = server.seen.lock().unwrap().clone();
    assert_eq!(previous, [None, Some("1".to_owned()), Some("2".to_owned())]);
}

#[tokio::test]
async fn the_message_is_sent_again_whole() {
    let server = Server::start([Status::unavailable("busy")]).await;
    server.reporter.set_service_status("a service by name", ServingStatus::NotServing).await;
    let (mut client, _) = client(&server);
    let answer = client.check(check("a service by name")).await.unwrap();
    assert_eq!(answer.into_inner().status(), Answered::NotServing);
    assert_eq!(server.calls(), 2);
}

// RET-2, trap 30
#[tokio::test]
async fn caller_gets_the_last_real_status() {
    let script = ["one", "two"].map(Status::unavailable).into_iter();
    let server = Server::start(script.chain([Status::resource_exhausted("three")])).await;
    let (mut client, slot) = client(&server);
    let status = client.check(check("")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::ResourceExhausted, "three"));
    let report = slot.take().unwrap();
    assert_eq!((report.attempts().len(), report.stop_reason()), (3, StopReason::AttemptsExhausted));
}

#[tokio::test]
async fn permanent_code_is_not_retried() {
    let script = || [Status::invalid_argument("no"), Status::internal("no"), Status::aborted("no")];
    let server = Server::start(script()).await;
    let (mut client, slot) = client(&server);
    for expected in script() {
        let status = client.check(check("")).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (expected.code(), "no"));
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Permanent);
    }
    assert_eq!(server.calls(), 3);
}

#[tokio::test]
async fn deadline_is_retried_if_repeatable() {
    let server = Server::start([Status::deadline_exceeded("one"), Status::deadline_exceeded("two")]).await;
    let (mut client, slot) = client_of(&server, quick().repeatable(false));
    let status = client.check(check("")).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, "one"));
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotRepeatable);

    let mut marked = Request::new(check(""));
    marked.extensions_mut().insert(CallOptions::new().repeatable(true));
    client.check(marked).await.unwrap();
    assert_eq!(server.calls(), 3);
}

// PB-12
#[tokio::test]
async fn pb_12_pushback_replaces_the_schedule() {
    let server = Server::start([unavailable("1")]).await;
    let (mut client, slot) = client(&server);
    client.check(check("")).await.unwrap();
    let delay = slot.take().unwrap().attempts()[0].delay.unwrap();
    assert!((1_000..=1_100).contains(&delay.as_micros()), "{delay:?}");
}

// PB-3, trap 29
#[tokio::test]
async fn pb_3_invalid_pushback_ends_the_call() {
    for pushback in ["-1", "soon"] {
        let server = Server::start([unavailable(pushback)]).await;
        let (mut client, slot) = client(&server);
        let status = client.check(check("")).await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "busy"));
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::ServerSaidStop);
        assert_eq!(server.calls(), 1);
    }
}

#[tokio::test]
async fn a_server_stream_comes_through() {
    let server = Server::start([Status::unavailable("busy")]).await;
    let (mut client, _) = client(&server);
    let mut states = client.watch(check("")).await.unwrap().into_inner();
    assert_eq!(states.message().await.unwrap().unwrap().status(), Answered::Serving);
    server.reporter.set_service_status("", ServingStatus::NotServing).await;
    assert_eq!(states.message().await.unwrap().unwrap().status(), Answered::NotServing);
    assert_eq!(server.calls(), 2);
}

#[tokio::test]
async fn refused_connection_is_retried() {
    // The port stays bound, without a listener yet.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let idle = Mutex::new(Some(socket));
    let (started, mut server) = mpsc::unbounded_channel();
    let policy = quick().observe_with(move |_: &str, event: &Event<'_>| {
        if let Event::WillRetry { .. } = event
            && let Some(socket) = idle.lock().unwrap().take()
        {
            started.send(Server::on(socket.listen(8).unwrap(), [])).unwrap();
        }
    });
    let retry = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(channel(address));
    let answer = HealthClient::new(retry).check(check("")).await.unwrap();
    let report = answer.extensions().get::<Report>().unwrap();
    let AttemptOutcome::Failed { failure, .. } = &report.attempts()[0].outcome else {
        panic!("{report}");
    };
    assert_eq!(failure.kind(), FailureKind::Connect);
    assert_eq!(server.recv().await.unwrap().calls(), 1);
}

// trap 30
#[tokio::test]
async fn status_of_an_error_is_the_bare_channels() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let retry = ServiceBuilder::new().layer(RetryLayer::new(quick())).service(channel(address));
    let wrapped = HealthClient::new(retry).check(check("")).await.unwrap_err();
    let bare = HealthClient::new(channel(address)).check(check("")).await.unwrap_err();
    assert_eq!(bare.code(), Code::Unavailable);
    assert_eq!((wrapped.code(), wrapped.message()), (bare.code(), bare.message()));
    let is_transport =
        |status: &Status| std::error::Error::source(status).is_some_and(|error| error.is::<tonic::transport::Error>());
    assert!(is_transport(&bare) && is_transport(&wrapped));
}

// DL-3
#[tokio::test]
async fn dl_3_stream_ends_with_deadline_exceeded() {
    let server = Server::start([]).await;
    let retry = RetryLayer::grpc().layer(channel(server.address));
    let mut request = Request::new(check(""));
    request.set_timeout(Duration::from_secs(60));
    let mut stream = HealthClient::new(retry).watch(request).await.unwrap().into_inner();
    stream.message().await.unwrap().unwrap();
    // No more data comes, and the clock advances to the deadline.
    tokio::time::pause();
    let status = stream.message().await.unwrap_err();
    let message = "the deadline of the call has passed";
    assert_eq!((status.code(), status.message()), (Code::DeadlineExceeded, message));
}

// DL-3
#[tokio::test]
async fn dl_3_unanswered_call_exceeds_deadline() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    let retry = RetryLayer::grpc().layer(channel(silent));
    let mut request = Request::new(check(""));
    request.set_timeout(Duration::from_secs(60));
    tokio::time::pause();
    let status = HealthClient::new(retry).check(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
}
