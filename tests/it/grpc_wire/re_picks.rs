//! Calls over several servers, with a channel to each. Retries, replacements and hedges go to servers that their call
//! has not tried.

use reattempt::endpoints::{Balanced, Endpoints};
use reattempt::error::Answered;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
use reattempt::guard::CircuitBreaker;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::standard::StandardLayer;
use tokio::time::{Instant, timeout};
use tonic::body::Body;
use tonic::client::GrpcService;
use tower::{BoxError, Layer};

use super::*;

const SECOND: Duration = Duration::from_secs(1);

/// Several servers. The first stream of each follows a script, and later ones are echoed.
struct Fleet(Vec<Server>);

type Channels = Balanced<Channel, Grpc, Answered>;

impl Fleet {
    fn in_memory(servers: usize, script: &[Step]) -> Self {
        Self((0..servers).map(|_| Server::in_memory([script.to_vec()])).collect())
    }

    async fn on_loopback(servers: usize, script: &[Step]) -> Self {
        let mut fleet = Vec::new();
        for _ in 0..servers {
            fleet.push(Server::start([script.to_vec()]).await);
        }
        Self(fleet)
    }

    fn channels(&self) -> Channels {
        Endpoints::list(0..self.0.len()).unwrap().connect(|number| self.0[number].channel()).grpc()
    }

    /// Returns the number of streams that each server got.
    fn calls(&self) -> Vec<usize> {
        self.0.iter().map(Server::calls).collect()
    }
}

/// Makes a call that may be repeated. Returns its outcome and its time.
async fn say<C>(client: C) -> (Result<String, Status>, Duration)
where
    C: GrpcService<Body>,
    C::Error: Into<BoxError>,
    C::ResponseBody: http_body::Body<Data = Bytes> + Send + 'static,
    <C::ResponseBody as http_body::Body>::Error: Into<BoxError> + Send,
{
    let mut request = Request::new(Text::new("hello"));
    request.extensions_mut().insert(CallOptions::new().repeatable(true));
    let began = Instant::now();
    let answer = EchoClient::new(client).say(request).await;
    (answer.map(|answer| answer.into_inner().text), began.elapsed())
}

fn unavailable_in_trailers() -> Vec<Step> {
    vec![Step::Read, Step::Head(head(&[])), Step::Trailers(fields(&[("grpc-status", b"14")]))]
}

fn pushed_back(milliseconds: &'static [u8]) -> Vec<Step> {
    vec![Step::Read, Step::Only(head(&[("grpc-status", b"14"), ("grpc-retry-pushback-ms", milliseconds)]))]
}

fn refused_stream() -> Vec<Step> {
    vec![Step::Reset(Reason::REFUSED_STREAM)]
}

fn gone_away() -> Vec<Step> {
    vec![Step::GoAwayBelow(Reason::NO_ERROR)]
}

fn lost() -> Vec<Step> {
    vec![Step::Read, Step::Cut]
}

/// Each way in which a first stream fails, the number of streams of a call of three attempts, and the wait before each
/// attempt after the first, where the schedule's is a second.
fn failures() -> [(Vec<Step>, usize, Duration); 6] {
    [
        (refused(), 3, SECOND),
        (unavailable_in_trailers(), 3, SECOND),
        (pushed_back(b"300"), 3, Duration::from_millis(300)),
        // One attempt that no application has seen is replaced, besides.
        (refused_stream(), 4, Duration::ZERO),
        (gone_away(), 4, Duration::ZERO),
        (lost(), 3, Duration::ZERO),
    ]
}

/// Each attempt goes to another server, whatever the failure. After an answer it keeps the delay of the schedule or of
/// the pushback; without an answer it is sent at once.
// E-1, E-18, PB-1, TR-2, ST-5
#[tokio::test(start_paused = true)]
async fn each_attempt_goes_to_another_server() {
    for (script, streams, wait) in failures() {
        let fleet = Fleet::in_memory(streams, &script);
        let retries = RetryLayer::new(RetryPolicy::grpc().repeatable(true).backoff(Constant::new(SECOND)));
        let client = retries.layer(PeekTrailersLayer::new(SECOND).layer(fleet.channels()));
        let (answer, time) = say(client).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{script:?}");
        assert_eq!(fleet.calls(), vec![1; streams], "{script:?}");
        assert_eq!(time, wait * 2, "{script:?}");
    }
}

/// Over connections on loopback, and below the standard stack, attempts go to other servers too. The breaker stays
/// closed.
// E-1
#[tokio::test]
async fn each_attempt_goes_elsewhere_on_loopback() {
    for (script, streams, _) in failures() {
        let fleet = Fleet::on_loopback(streams, &script).await;
        let policy = policy().budget(reattempt::RetryBudget::default());
        let stack = StandardLayer::grpc().retry(policy).guards(CircuitBreaker::rate().consecutive_failures(0));
        let channels = fleet.channels();
        let client = stack.layer(PeekTrailersLayer::new(SECOND).layer(channels.clone()));
        let (answer, _) = say(client.clone()).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{script:?}");
        assert_eq!(fleet.calls(), vec![1; streams], "{script:?}");
        assert_eq!(say(client).await.0.unwrap(), "hello", "{script:?}");
        let view = channels.endpoints().view();
        assert!(view.iter().all(|view| view.failing > 0.0 && view.in_flight == 0), "{script:?}: {view:?}");
    }
}

/// A status after a message is the caller's, and is not retried. It counts for its endpoint, which gets no more calls
/// while another one is well.
// ST-5
#[tokio::test(start_paused = true)]
async fn status_in_trailers_counts_for_its_server() {
    let script = [Step::Read, Step::Head(head(&[])), Step::Echo, Step::Trailers(fields(&[("grpc-status", b"14")]))];
    let fleet = Fleet::in_memory(2, &script);
    let channels = fleet.channels();
    let client = RetryLayer::new(policy()).layer(channels.clone());
    assert_eq!(say(client.clone()).await.0.unwrap_err().code(), Code::Unavailable);
    let failing: Vec<_> = channels.endpoints().view().iter().map(|view| view.failing > 0.0).collect();
    assert_eq!(failing, fleet.calls().iter().map(|calls| *calls == 1).collect::<Vec<_>>());
    assert!(channels.endpoints().view().iter().all(|view| view.in_flight == 0));
    say(client).await.0.unwrap_err();
    assert_eq!(fleet.calls(), [1, 1]);
}

fn config(policy: &str) -> ServiceConfigLayer {
    let text = format!(r#"{{"methodConfig": [{{"name": [{{}}], {policy}}}]}}"#);
    ServiceConfigLayer::new(ServiceConfig::parse(&text).unwrap())
}

/// A config's retries go to another server, each after the config's delay, which is a second within a fifth. Pushback
/// replaces it.
// E-1, E-18, PB-1, SC-1
#[tokio::test(start_paused = true)]
async fn config_retries_go_to_other_servers() {
    let retried = r#""retryPolicy": {
        "maxAttempts": 3, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
        "retryableStatusCodes": ["UNAVAILABLE"]
    }"#;
    for (script, streams, wait) in failures() {
        let fleet = Fleet::in_memory(streams, &script);
        let client = config(retried).layer(PeekTrailersLayer::new(SECOND).layer(fleet.channels()));
        let (answer, time) = say(client).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{script:?}");
        assert_eq!(fleet.calls(), vec![1; streams], "{script:?}");
        let spread = if wait == SECOND { wait * 2 / 5 } else { Duration::ZERO };
        assert!(time.abs_diff(wait * 2) <= spread, "{script:?}: {time:?}");
    }
}

/// A method without a policy of its own has its unseen attempts replaced, on another server.
// E-1, CALL-2
#[tokio::test(start_paused = true)]
async fn replacement_goes_to_another_server() {
    for script in [refused_stream(), gone_away()] {
        let fleet = Fleet::in_memory(2, &script);
        let client = ServiceConfigLayer::new(ServiceConfig::default()).layer(fleet.channels());
        say(client).await.0.unwrap_err();
        assert_eq!(fleet.calls(), [1, 1], "{script:?}");
    }
}

/// Hedges go to servers without an attempt of their call, whether the attempts before them hang, fail or are replaced,
/// by a config or by a layer.
// E-3, HG-1, HG-4, TR-6
#[tokio::test(start_paused = true)]
async fn hedges_go_to_servers_not_in_flight() {
    let hedged = r#""hedgingPolicy": {
        "maxAttempts": 3, "hedgingDelay": "0.2s", "nonFatalStatusCodes": ["UNAVAILABLE"]
    }"#;
    let hangs = vec![Step::Read, Step::Hang];
    for (script, streams) in [(hangs.clone(), 3), (refused(), 3), (pushed_back(b"100"), 3), (refused_stream(), 4)] {
        let fleet = Fleet::in_memory(streams, &script);
        let _ended = timeout(SECOND, say(config(hedged).layer(fleet.channels()))).await;
        assert_eq!(fleet.calls(), vec![1; streams], "{script:?}");

        let fleet = Fleet::in_memory(streams, &script);
        let policy = HedgePolicy::grpc().max_attempts(3).delay(SECOND / 5);
        let _ended = timeout(SECOND, say(HedgeLayer::new(policy).layer(fleet.channels()))).await;
        assert_eq!(fleet.calls(), vec![1; streams], "{script:?}");
    }
    // The first that answers wins, and the others are cancelled.
    let mut fleet = Fleet::in_memory(3, &hangs);
    fleet.0[1] = Server::in_memory([succeeds()]);
    let channels = fleet.channels();
    let (answer, time) = say(config(hedged).layer(channels.clone())).await;
    assert_eq!(answer.unwrap(), "hello");
    assert_eq!(time, SECOND / 5 * u32::try_from(fleet.calls().iter().sum::<usize>() - 1).unwrap());
    assert!(fleet.calls().iter().all(|calls| *calls <= 1), "{:?}", fleet.calls());
    assert!(channels.endpoints().view().iter().all(|view| view.in_flight == 0));
}
