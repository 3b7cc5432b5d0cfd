//! The metrics of a generated client's calls on a tonic server.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{StreamExt, TryStreamExt};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use reattempt::grpc::Grpc;
use reattempt::grpc::metrics::{GrpcMetrics, RetryMetric};
use reattempt::schedule::Constant;
use reattempt::telemetry::Measured;
use reattempt::{Retry, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::ServiceBuilder;

use echo::Text;
use echo::echo_client::EchoClient;
use echo::echo_server::{Echo, EchoServer};

use crate::support::echo;

/// A service that fails by its script and then echoes; the message "hang" makes it hang.
#[derive(Clone, Default)]
struct Echoing(Arc<Mutex<VecDeque<Status>>>);

impl Echoing {
    fn check(&self) -> Result<(), Status> {
        self.0.lock().unwrap().pop_front().map_or(Ok(()), Err)
    }
}

#[tonic::async_trait]
impl Echo for Echoing {
    type RepeatStream = BoxStream<'static, Result<Text, Status>>;
    type TalkStream = BoxStream<'static, Result<Text, Status>>;

    async fn say(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        self.check()?;
        let text = request.into_inner();
        if text.text == "hang" {
            std::future::pending::<()>().await;
        }
        Ok(Response::new(text))
    }

    /// Joins all messages.
    async fn gather(&self, request: Request<Streaming<Text>>) -> Result<Response<Text>, Status> {
        let texts: Vec<_> = request.into_inner().map_ok(|text| text.text).try_collect().await?;
        self.check()?;
        Ok(Response::new(Text::new(texts.concat())))
    }

    /// Answers with each word, and then by the script.
    async fn repeat(&self, request: Request<Text>) -> Result<Response<Self::RepeatStream>, Status> {
        let text = request.into_inner().text;
        let words: Vec<_> = text.split(' ').map(|word| Ok(Text::new(word))).collect();
        let end = stream::iter(self.check().err().map(Err));
        Ok(Response::new(stream::iter(words).chain(end).boxed()))
    }

    async fn talk(&self, request: Request<Streaming<Text>>) -> Result<Response<Self::TalkStream>, Status> {
        Ok(Response::new(request.into_inner().boxed()))
    }
}

type Retried = Retry<Measured<Channel, GrpcMetrics>, RetryPolicy<Grpc, Constant>>;

struct Running {
    client: EchoClient<Measured<Retried, GrpcMetrics>>,
    provider: SdkMeterProvider,
    exporter: InMemoryMetricExporter,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(script: impl IntoIterator<Item = Status>) -> Self {
        Self::start_with(script, |endpoint| endpoint).await
    }

    async fn start_with(script: impl IntoIterator<Item = Status>, change: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let server = EchoServer::new(Echoing(Arc::new(Mutex::new(script.into_iter().collect()))));
        let incoming = TcpIncoming::from(listener);
        let server = Server::builder().add_service(server).serve_with_incoming(incoming);
        let task = tokio::spawn(async move { server.await.unwrap() });
        let exporter = InMemoryMetricExporter::default();
        let reader = PeriodicReader::builder(exporter.clone()).build();
        let provider = SdkMeterProvider::builder().with_reader(reader).build();
        let metrics = GrpcMetrics::new(&provider, "dns:///echo").enable(RetryMetric::ALL);
        let policy = RetryPolicy::grpc().repeatable(true).backoff(Constant::immediate());
        let client = ServiceBuilder::new()
            .layer(metrics.around(RetryLayer::new(policy)))
            .service(change(Endpoint::from_shared(url).unwrap()).connect_lazy());
        Self { client: EchoClient::new(client), provider, exporter, task }
    }

    /// Returns the number of measurements by the name of the instrument (without the common
    /// prefix), by method and status. An instrument of whole numbers also has the sum.
    fn measured(&self) -> BTreeMap<String, (u64, u64)> {
        self.exporter.reset();
        self.provider.force_flush().unwrap();
        let all = self.exporter.get_finished_metrics().unwrap().pop().unwrap();
        let mut measured = BTreeMap::new();
        for metric in all.scope_metrics().flat_map(|scope| scope.metrics()) {
            let mut note = |labels: Vec<_>, count, sum| {
                let labels: BTreeMap<String, String> = labels.into_iter().collect();
                assert_eq!(labels["grpc.target"], "dns:///echo");
                let method = labels["grpc.method"].strip_prefix("reattempt.testing.Echo/").unwrap();
                let name = metric.name().strip_prefix("grpc.client.").unwrap();
                let name = name.replace("_total_compressed_message_size", "");
                let status = labels.get("grpc.status").map_or("", String::as_str);
                let key = format!("{name} {method} {status}").trim_end().to_owned();
                assert_eq!(measured.insert(key.clone(), (count, sum)), None, "{key} is there once");
            };
            macro_rules! labels {
                ($point:expr) => {
                    $point.attributes().map(|own| (own.key.to_string(), own.value.to_string())).collect()
                };
            }
            match metric.data() {
                AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                    sum.data_points().for_each(|point| note(labels!(point), point.value(), 0));
                }
                AggregatedMetrics::U64(MetricData::Histogram(all)) => {
                    all.data_points().for_each(|at| note(labels!(at), at.count(), at.sum()));
                }
                AggregatedMetrics::F64(MetricData::Histogram(all)) => {
                    all.data_points().for_each(|point| note(labels!(point), point.count(), 0));
                }
                other => panic!("{other:?}"),
            }
        }
        measured
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lines<const N: usize>(lines: [(&str, u64, u64); N]) -> BTreeMap<String, (u64, u64)> {
    lines.into_iter().map(|(name, count, sum)| (name.to_owned(), (count, sum))).collect()
}

fn busy() -> Status {
    Status::unavailable("busy")
}

// OBS-2, OBS-4
#[tokio::test]
async fn obs_2_obs_4_a_unary_call_that_is_retried() {
    let mut server = Running::start([busy(), busy()]).await;
    let answer = server.client.say(Text::new("hello")).await.unwrap();
    assert_eq!(answer.into_inner(), Text::new("hello"));
    let expected = [
        ("attempt.started Say", 3, 0),
        ("attempt.duration Say UNAVAILABLE", 2, 0),
        ("attempt.duration Say OK", 1, 0),
        // The message has seven bytes: two before the text.
        ("attempt.sent Say UNAVAILABLE", 2, 14),
        ("attempt.sent Say OK", 1, 7),
        ("attempt.rcvd Say UNAVAILABLE", 2, 0),
        ("attempt.rcvd Say OK", 1, 7),
        ("call.duration Say OK", 1, 0),
        ("call.retries Say", 1, 2),
        ("call.retry_delay Say", 1, 0),
    ];
    assert_eq!(server.measured(), lines(expected));
}

// OBS-2
#[tokio::test]
async fn obs_2_streams_are_measured_as_a_whole() {
    let mut server = Running::start([busy()]).await;
    let texts = || stream::iter(["one", "two", "three"].map(Text::new));
    server.client.gather(texts()).await.unwrap();
    let words = server.client.repeat(Text::new("one two three")).await.unwrap().into_inner();
    assert_eq!(words.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let echoes = server.client.talk(texts()).await.unwrap().into_inner();
    assert_eq!(echoes.try_collect::<Vec<_>>().await.unwrap().len(), 3);
    let expected = [
        ("attempt.started Gather", 2, 0),
        ("attempt.duration Gather UNAVAILABLE", 1, 0),
        ("attempt.duration Gather OK", 1, 0),
        ("attempt.sent Gather UNAVAILABLE", 1, 17),
        ("attempt.sent Gather OK", 1, 17),
        ("attempt.rcvd Gather UNAVAILABLE", 1, 0),
        ("attempt.rcvd Gather OK", 1, 13),
        ("call.duration Gather OK", 1, 0),
        ("call.retries Gather", 1, 1),
        ("call.retry_delay Gather", 1, 0),
        ("attempt.started Repeat", 1, 0),
        ("attempt.duration Repeat OK", 1, 0),
        ("attempt.sent Repeat OK", 1, 15),
        ("attempt.rcvd Repeat OK", 1, 17),
        ("call.duration Repeat OK", 1, 0),
        ("call.retry_delay Repeat", 1, 0),
        ("attempt.started Talk", 1, 0),
        ("attempt.duration Talk OK", 1, 0),
        ("attempt.sent Talk OK", 1, 17),
        ("attempt.rcvd Talk OK", 1, 17),
        ("call.duration Talk OK", 1, 0),
        ("call.retry_delay Talk", 1, 0),
    ];
    assert_eq!(server.measured(), lines(expected));
}

/// Returns the statuses of attempts and calls.
fn ends(server: &Running) -> Vec<String> {
    server.measured().into_keys().filter(|line| line.contains("duration")).collect()
}

// OBS-2
#[tokio::test]
async fn obs_2_stream_ends_by_trailers_or_drop() {
    let mut server = Running::start([busy()]).await;
    let words = server.client.repeat(Text::new("one two")).await.unwrap().into_inner();
    assert_eq!(words.try_collect::<Vec<_>>().await.unwrap_err().code(), Code::Unavailable);
    let both = ["attempt.duration Repeat UNAVAILABLE", "call.duration Repeat UNAVAILABLE"];
    assert_eq!(ends(&server), both);

    let mut server = Running::start([]).await;
    let mut words = server.client.repeat(Text::new("one two")).await.unwrap().into_inner();
    words.message().await.unwrap();
    assert_eq!(ends(&server), [""; 0]);
    drop(words);
    assert_eq!(ends(&server), ["attempt.duration Repeat CANCELLED", "call.duration Repeat CANCELLED"]);
}

// OBS-2
#[tokio::test]
async fn obs_2_missing_server_is_unavailable() {
    let mut server = Running::start([]).await;
    server.task.abort();
    assert!((&mut server.task).await.is_err());
    server.client.say(Text::new("hello")).await.unwrap_err();
    assert_eq!(ends(&server), ["attempt.duration Say UNAVAILABLE", "call.duration Say UNAVAILABLE"]);
}

/// The result is the same whether the channel's or the layer's timer fires first.
// OBS-2
#[tokio::test(start_paused = true)]
async fn obs_2_deadline_of_channel_counts_once() {
    let mut server = Running::start([]).await;
    let mut request = Request::new(Text::new("hang"));
    request.set_timeout(Duration::from_secs(5));
    let status = server.client.say(request).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded);
    let both = ["attempt.duration Say DEADLINE_EXCEEDED", "call.duration Say DEADLINE_EXCEEDED"];
    assert_eq!(ends(&server), both);
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn obs_2_channel_time_limit_is_a_deadline() {
    let limit = |endpoint: Endpoint| endpoint.timeout(Duration::from_secs(5));
    let mut server = Running::start_with([], limit).await;
    server.client.say(Text::new("hang")).await.unwrap_err();
    let both = ["attempt.duration Say DEADLINE_EXCEEDED", "call.duration Say DEADLINE_EXCEEDED"];
    assert_eq!(ends(&server), both);
}
