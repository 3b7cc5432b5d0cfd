//! Calls under a service config, each by its method, against a service that answers by a script under
//! a paused clock.

use std::collections::HashMap;
use std::error::Error;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reattempt::classify::Outcome;
use reattempt::grpc::GrpcBody;
use reattempt::grpc::service_config::{Client, ServiceConfigLayer};
use reattempt::hedge::HedgeReport;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Deadline, Report, RetryLayer};
use reattempt_core::{StopReason, Verdict};
use reattempt_grpc::{Code, ServiceConfig, ServiceConfigHandle};
use tokio::time::{Instant, timeout};
use tonic::body::Body;
use tower::limit::ConcurrencyLimit;
use tower::{BoxError, Layer, Service, ServiceExt};

type Frames = futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, BoxError>>>;
type Answer = Response<StreamBody<Frames>>;

/// The outcome of an attempt.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// One block of headers with this status, and with pushback if there is one.
    Only(Code, Option<&'static str>),
    /// Headers, and trailers with this status.
    Answer(Code),
    /// There is no connection.
    NoConnection,
    /// The connection is lost.
    Lost,
    /// No answer ever comes.
    Hang,
}

/// Plays for each path its steps in order, and goes on with the last.
#[derive(Clone)]
struct Server(Arc<State>);

struct State {
    began: Instant,
    scripts: HashMap<&'static str, Vec<Step>>,
    seen: Mutex<Vec<Seen>>,
}

struct Seen {
    at: Duration,
    path: String,
    headers: HeaderMap,
}

impl Server {
    fn new(scripts: impl IntoIterator<Item = (&'static str, Vec<Step>)>) -> Self {
        let scripts = scripts.into_iter().collect();
        Self(Arc::new(State { began: Instant::now(), scripts, seen: Mutex::default() }))
    }

    /// With one script for the method that [`call`] calls.
    fn of(script: impl IntoIterator<Item = Step>) -> Self {
        Self::new([(PATH, script.into_iter().collect())])
    }

    fn count(&self) -> usize {
        self.0.seen.lock().unwrap().len()
    }

    /// The time of each attempt, in milliseconds.
    fn times(&self) -> Vec<u128> {
        self.0.seen.lock().unwrap().iter().map(|seen| seen.at.as_millis()).collect()
    }

    fn fields(&self, name: &str) -> Vec<Option<String>> {
        let seen = self.0.seen.lock().unwrap();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        seen.iter().map(|seen| seen.headers.get(name).map(text)).collect()
    }
}

impl Service<Request<Body>> for Server {
    type Response = Answer;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let mut seen = self.0.seen.lock().unwrap();
        let before = seen.iter().filter(|seen| seen.path == path).count();
        let script = &self.0.scripts[&*path];
        let step = *script.get(before).or(script.last()).unwrap();
        let headers = request.headers().clone();
        seen.push(Seen { at: self.0.began.elapsed(), path, headers });
        drop(seen);
        Box::pin(async move {
            match step {
                Step::Only(code, pushback) => {
                    let mut answer = answer(vec![]);
                    answer.headers_mut().insert("grpc-status", code.number().into());
                    if let Some(pushback) = pushback {
                        let pushback = pushback.parse().unwrap();
                        answer.headers_mut().insert("grpc-retry-pushback-ms", pushback);
                    }
                    Ok(answer)
                }
                Step::Answer(code) => {
                    let status = ("grpc-status".parse().unwrap(), code.number().into());
                    let trailers = HeaderMap::from_iter([status]);
                    Ok(answer(vec![Ok(Frame::trailers(trailers))]))
                }
                Step::NoConnection => Err(std::io::ErrorKind::ConnectionRefused.into()),
                Step::Lost => Err(std::io::ErrorKind::ConnectionReset.into()),
                Step::Hang => pending().await,
            }
        })
    }
}

fn answer(frames: Vec<Result<Frame<Bytes>, BoxError>>) -> Answer {
    Response::new(StreamBody::new(futures_util::stream::iter(frames)))
}

const PATH: &str = "/service/method";
const OK: Step = Step::Answer(Code::Ok);
const UNAVAILABLE: Step = Step::Only(Code::Unavailable, None);
const ABORTED: Step = Step::Only(Code::Aborted, None);

fn pushed_back(milliseconds: &'static str) -> Step {
    Step::Only(Code::Unavailable, Some(milliseconds))
}

fn call() -> Request<Body> {
    call_of(PATH)
}

fn call_of(path: &str) -> Request<Body> {
    Request::post(format!("http://one.example{path}")).body(Body::empty()).unwrap()
}

/// A document with these method configs.
fn document(entries: &[&str]) -> String {
    format!(r#"{{"methodConfig": [{}]}}"#, entries.join(", "))
}

fn retries(attempts: u32, backoff: &str, codes: &str) -> String {
    format!(
        r#""retryPolicy": {{
            "maxAttempts": {attempts}, "initialBackoff": "{backoff}", "maxBackoff": "10s",
            "backoffMultiplier": 2, "retryableStatusCodes": {codes}
        }}"#
    )
}

/// All methods are retried so.
fn retried(attempts: u32, backoff: &str, codes: &str) -> String {
    document(&[&format!(r#"{{"name": [{{}}], {}}}"#, retries(attempts, backoff, codes))])
}

fn hedged(attempts: u32, delay: &str, codes: &str) -> String {
    document(&[&format!(
        r#"{{"name": [{{}}], "hedgingPolicy": {{
            "maxAttempts": {attempts}, "hedgingDelay": "{delay}", "nonFatalStatusCodes": {codes}
        }}}}"#
    )])
}

fn throttled(config: &str, max_tokens: f64, ratio: f64) -> String {
    let config = config.strip_suffix('}').unwrap();
    let separator = if config.ends_with('{') { "" } else { ", " };
    format!(
        r#"{config}{separator}"retryThrottling": {{"maxTokens": {max_tokens}, "tokenRatio": {ratio}}}}}"#
    )
}

fn parse(text: &str) -> ServiceConfig {
    ServiceConfig::parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn client(text: &str, server: &Server) -> Client<Server> {
    ServiceConfigLayer::new(parse(text)).layer(server.clone())
}

/// The code with which a call ends, and why; reads the answer to its end.
async fn end_of(
    client: &Client<Server>,
    request: Request<Body>,
) -> (Result<Code, std::io::Error>, StopReason) {
    let slot = ReportSlot::default();
    let client = client.with_options(CallOptions::new().report_to(&slot));
    // Long past every limit that is tested here.
    let within = Duration::from_secs(3600);
    let code = match tokio::time::timeout(within, client.oneshot(request)).await.unwrap() {
        Err(error) => Err(error),
        Ok(answer) => Ok(code_of(answer).await),
    };
    let stop = slot.take().map_or(StopReason::Succeeded, |report: Report| report.stop_reason());
    (code, stop)
}

async fn code_of(answer: Response<GrpcBody<StreamBody<Frames>>>) -> Code {
    let (head, body) = answer.into_parts();
    let trailers = body.collect().await.unwrap().trailers().cloned();
    let status = head.headers.get("grpc-status").cloned();
    let status = status.or_else(|| trailers?.get("grpc-status").cloned()).unwrap();
    Code::from_bytes(status.as_bytes())
}

async fn ends(client: &Client<Server>, code: Code, stop: StopReason) {
    let (ended, why) = end_of(client, call()).await;
    assert_eq!((ended.unwrap(), why), (code, stop));
}

// SC-1
#[tokio::test(start_paused = true)]
async fn each_method_is_retried_by_its_config() {
    let entry = |name: &str, attempts, codes| {
        format!(r#"{{"name": [{name}], {}}}"#, retries(attempts, "0.01s", codes))
    };
    let text = document(&[
        &entry("{}", 2, r#"["UNAVAILABLE"]"#),
        &entry(r#"{"service": "a.B"}"#, 3, r#"["UNAVAILABLE", "ABORTED"]"#),
        &entry(r#"{"service": "a.B", "method": "Get"}"#, 4, r#"["ABORTED"]"#),
        r#"{"name": [{"service": "a.B", "method": "Put"}]}"#,
    ]);
    // (path, how it fails, how often it is called)
    let rows = [
        ("/a.B/Get", ABORTED, 4),
        ("/a.B/Get", UNAVAILABLE, 1),
        ("/a.B/List", ABORTED, 3),
        ("/a.B/List", UNAVAILABLE, 3),
        ("/a.B/Put", UNAVAILABLE, 1),
        ("/c.D/Get", UNAVAILABLE, 2),
        ("/c.D/Get", ABORTED, 1),
        ("/nonsense", UNAVAILABLE, 2),
    ];
    for (path, step, count) in rows {
        let server = Server::new([(path, vec![step])]);
        let (code, _) = end_of(&client(&text, &server), call_of(path)).await;
        let expected = if step == ABORTED { Code::Aborted } else { Code::Unavailable };
        assert_eq!((code.unwrap(), server.count()), (expected, count), "{path}");
    }
}

// CALL-1, TR-1
#[tokio::test(start_paused = true)]
async fn seen_calls_do_not_retry_without_policy() {
    for text in ["{}", r#"{"methodConfig": [{"name": [{}], "timeout": "20s"}]}"#] {
        for step in [UNAVAILABLE, Step::Only(Code::ResourceExhausted, None), pushed_back("0")] {
            let server = Server::of([step, OK]);
            let (code, stop) = end_of(&client(text, &server), call()).await;
            assert_ne!(code.unwrap(), Code::Ok, "{text}");
            assert_eq!((server.count(), stop), (1, StopReason::Permanent), "{text}");
        }
        let server = Server::of([Step::Lost, OK]);
        let (code, stop) = end_of(&client(text, &server), call()).await;
        assert_eq!((code.unwrap(), stop), (Code::Unavailable, StopReason::Permanent));
        assert_eq!(server.count(), 1, "{text}");

        // What was not sent, for want of a connection, is retried by the defaults.
        let server = Server::of([Step::NoConnection]);
        let (code, stop) = end_of(&client(text, &server), call()).await;
        assert_eq!((code.unwrap(), stop), (Code::Unavailable, StopReason::AttemptsExhausted));
        assert_eq!(server.count(), 3, "{text}");
    }
}

// TR-1
#[tokio::test(start_paused = true)]
async fn unmade_connection_is_unavailable() {
    for step in [Step::NoConnection, Step::Lost] {
        let server = Server::of([step, step, OK]);
        ends(&client(&retried(4, "0.01s", "[14]"), &server), Code::Ok, StopReason::Succeeded).await;
        assert_eq!(server.count(), 3);
        let server = Server::of([step, OK]);
        let (code, stop) = end_of(&client(&retried(4, "0.01s", "[10]"), &server), call()).await;
        assert_eq!((code.unwrap(), stop), (Code::Unavailable, StopReason::Permanent));
        assert_eq!(server.count(), 1);
    }
}

// BK-1, BK-2, BK-3
#[tokio::test(start_paused = true)]
async fn delays_are_the_configs_within_a_fifth() {
    let text = retried(5, "1s", "[14]").replace("10s", "3s");
    let mut shortest = [u128::MAX; 4];
    let mut longest = [0; 4];
    for _ in 0..200 {
        let server = Server::of([UNAVAILABLE]);
        end_of(&client(&text, &server), call()).await.0.unwrap();
        for (index, pair) in server.times().windows(2).enumerate() {
            shortest[index] = shortest[index].min(pair[1] - pair[0]);
            longest[index] = longest[index].max(pair[1] - pair[0]);
        }
    }
    for (index, usual) in [1000, 2000, 3000, 3000].into_iter().enumerate() {
        let (low, high) = (usual * 8 / 10, usual * 12 / 10);
        assert!((low..low + usual / 20).contains(&shortest[index]), "{shortest:?}");
        assert!((high - usual / 20..=high + 1).contains(&longest[index]), "{longest:?}");
    }
}

// PB-5
#[tokio::test(start_paused = true)]
async fn pb_5_after_pushback_backoff_begins_anew() {
    let text = retried(5, "1s", "[14]");
    let server = Server::of([UNAVAILABLE, UNAVAILABLE, pushed_back("7000"), UNAVAILABLE]);
    end_of(&client(&text, &server), call()).await.0.unwrap();
    let times = server.times();
    let delays: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!((800..=1201).contains(&delays[0]) && (1600..=2401).contains(&delays[1]), "{delays:?}");
    assert_eq!(delays[2], 7000);
    assert!((800..=1201).contains(&delays[3]), "{delays:?}");
}

// CALL-6
#[tokio::test(start_paused = true)]
async fn call_under_way_keeps_its_config() {
    let server = Server::of([UNAVAILABLE]);
    let handle = ServiceConfigHandle::new(parse(&retried(4, "1s", "[14]")));
    let client = ServiceConfigLayer::new(handle.clone()).layer(server.clone());
    let begun = tokio::spawn(client.clone().oneshot(call()));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.count(), 1);
    handle.update(ServiceConfig::parse("{}")).unwrap();
    code_of(begun.await.unwrap().unwrap()).await;
    assert_eq!(server.count(), 4);
    end_of(&client, call()).await.0.unwrap();
    assert_eq!(server.count(), 5, "the next call has no policy any more");
}

// CALL-8
#[tokio::test(start_paused = true)]
async fn call_8_clients_cap_lowers_attempts() {
    // (the config's attempts, the client's cap, how often the server is called)
    let rows = [(9, None, 5), (9, Some(7), 7), (3, Some(7), 3), (9, Some(2), 2), (9, Some(0), 1)];
    for (attempts, cap, count) in rows {
        let server = Server::of([UNAVAILABLE]);
        let mut layer = ServiceConfigLayer::new(parse(&retried(attempts, "0.01s", "[14]")));
        if let Some(cap) = cap {
            layer = layer.max_attempts(cap);
        }
        end_of(&layer.layer(server.clone()), call()).await.0.unwrap();
        assert_eq!(server.count(), count, "{attempts}, {cap:?}");
    }
}

// DL-1
#[tokio::test(start_paused = true)]
async fn smaller_timeout_counts() {
    let text = r#"{"methodConfig": [{"name": [{}], "timeout": "2s"}]}"#;
    for (own, ends_at, told) in
        [(None, 2000, "2000000u"), (Some("9S"), 2000, "2000000u"), (Some("1S"), 1000, "1S")]
    {
        let server = Server::of([Step::Hang]);
        let mut call = call();
        if let Some(own) = own {
            call.headers_mut().insert("grpc-timeout", own.parse().unwrap());
        }
        let began = Instant::now();
        let (code, stop) = end_of(&client(text, &server), call).await;
        assert_eq!((code.unwrap(), stop), (Code::DeadlineExceeded, StopReason::DeadlineExceeded));
        assert_eq!(began.elapsed().as_millis(), ends_at, "{own:?}");
        assert_eq!(server.fields("grpc-timeout"), [Some(told.to_owned())], "{own:?}");
    }
    let server = Server::of([Step::Hang]);
    let mut call = call();
    call.extensions_mut().insert(Deadline::after(Duration::from_millis(500)));
    let began = Instant::now();
    assert_eq!(end_of(&client(text, &server), call).await.0.unwrap(), Code::DeadlineExceeded);
    assert_eq!(began.elapsed().as_millis(), 500);
}

// SC-12
#[tokio::test(start_paused = true)]
async fn timeout_of_0_ends_call_at_once() {
    let server = Server::of([OK]);
    let text = r#"{"methodConfig": [{"name": [{}], "timeout": "0s"}]}"#;
    let (code, _) = end_of(&client(text, &server), call()).await;
    assert_eq!((code.unwrap(), server.count()), (Code::DeadlineExceeded, 0));
}

// THR-1, THR-4
#[tokio::test(start_paused = true)]
async fn methods_share_and_fill_one_bucket() {
    let text = throttled(&retried(2, "0.01s", "[14]"), 4.0, 0.5);
    let scripts = [("/a/Fails", vec![UNAVAILABLE]), ("/b/Works", vec![OK])];
    let server = Server::new(scripts);
    let client = client(&text, &server);
    let throttle = client.handle().throttle().clone();
    let left = || throttle.tokens_thousandths().unwrap();
    // Each failed attempt costs one, the last one too (rule RET-1).
    assert_eq!(end_of(&client, call_of("/a/Fails")).await.1, StopReason::AttemptsExhausted);
    assert_eq!((server.count(), left()), (2, 2_000));
    assert_eq!(end_of(&client, call_of("/a/Fails")).await.1, StopReason::BudgetExhausted);
    assert_eq!((server.count(), left()), (3, 1_000), "the first attempt is sent, and no other");
    for tokens in [1_500, 2_000, 2_500] {
        assert_eq!(end_of(&client, call_of("/b/Works")).await.0.unwrap(), Code::Ok);
        assert_eq!(left(), tokens);
    }
}

// THR-4
#[tokio::test(start_paused = true)]
async fn success_earns_when_trailers_have_come() {
    let text = throttled("{}", 4.0, 0.5);
    let server = Server::new([("/a/A", vec![OK]), ("/a/B", vec![Step::Answer(Code::Internal)])]);
    let client = client(&text, &server);
    let throttle = client.handle().throttle().clone();
    throttle.failed();
    let answer = client.clone().oneshot(call_of("/a/A")).await.unwrap();
    assert_eq!(throttle.tokens_thousandths(), Some(3_000), "its status has not come yet");
    code_of(answer).await;
    assert_eq!(throttle.tokens_thousandths(), Some(3_500));
    assert_eq!(end_of(&client, call_of("/a/B")).await.0.unwrap(), Code::Internal);
    assert_eq!(throttle.tokens_thousandths(), Some(3_500));
}

// THR-3
#[tokio::test(start_paused = true)]
async fn only_listed_codes_cost_a_token() {
    // (the config, how the call ends, what is left of four tokens)
    let policy = retried(2, "0.01s", "[14]");
    let rows = [
        ("{}", UNAVAILABLE, 4_000),
        ("{}", pushed_back("-1"), 4_000),
        (&*policy, ABORTED, 4_000),
        (&*policy, Step::Answer(Code::Aborted), 4_000),
        (&*policy, Step::Answer(Code::Unavailable), 3_000),
        (&*policy, pushed_back("-1"), 3_000),
        (&*policy, Step::Only(Code::Aborted, Some("-1")), 3_000),
    ];
    for (index, (text, step, left)) in rows.into_iter().enumerate() {
        let server = Server::of([step]);
        let client = client(&throttled(text, 4.0, 0.5), &server);
        end_of(&client, call()).await.0.unwrap();
        assert_eq!(server.count(), 1, "{index}");
        assert_eq!(client.handle().throttle().tokens_thousandths(), Some(left), "{index}");
    }
}

// THR-1
#[tokio::test(start_paused = true)]
async fn thr_1_new_config_keeps_bucket_of_calls() {
    let text = throttled(&retried(2, "0.01s", "[14]"), 4.0, 0.5);
    let server = Server::of([UNAVAILABLE]);
    let client = client(&text, &server);
    end_of(&client, call()).await.0.unwrap();
    client.handle().update(ServiceConfig::parse(&text)).unwrap();
    end_of(&client, call()).await.0.unwrap();
    assert_eq!(server.count(), 3, "no free refill");
    assert_eq!(client.handle().throttle().tokens_thousandths(), Some(1_000));
}

// HG-1
#[tokio::test(start_paused = true)]
async fn hedged_method_follows_config_delay() {
    let server = Server::of([Step::Hang, Step::Hang, OK]);
    let client = client(&hedged(4, "0.25s", "[]"), &server);
    let answer = client.oneshot(call()).await.unwrap();
    let report = *answer.extensions().get::<HedgeReport>().unwrap();
    assert_eq!((report.attempts(), report.winner()), (3, 3));
    assert_eq!(server.times(), [0, 250, 500]);
    assert_eq!(code_of(answer).await, Code::Ok);
}

// HG-4, HG-5
#[tokio::test(start_paused = true)]
async fn config_codes_leave_others_running() {
    // (how the first attempt fails, when the attempts are sent)
    let rows = [(ABORTED, vec![0, 0]), (UNAVAILABLE, vec![0]), (Step::Lost, vec![0])];
    for (step, times) in rows {
        let server = Server::of([step, OK]);
        let code = end_of(&client(&hedged(3, "1s", r#"["ABORTED"]"#), &server), call()).await.0;
        assert_eq!(code.is_ok_and(|code| code == Code::Ok), times.len() == 2);
        assert_eq!(server.times(), times);
    }
}

// CALL-8, HG-2
#[tokio::test(start_paused = true)]
async fn delay_of_0_sends_all_up_to_cap() {
    for (cap, count) in [(5, 5), (2, 2), (1, 1)] {
        let server = Server::of([Step::Hang]);
        let layer = ServiceConfigLayer::new(parse(&hedged(9, "0s", "[]"))).max_attempts(cap);
        let call = layer.layer(server.clone()).oneshot(call());
        assert!(tokio::time::timeout(Duration::from_secs(60), call).await.is_err());
        assert_eq!(server.count(), count);
    }
}

// HG-8, HG-11
#[tokio::test(start_paused = true)]
async fn hedges_share_bucket_and_timeout() {
    let text = throttled(&hedged(5, "0.1s", "[14]"), 4.0, 0.5);
    let text = text.replacen(r#""name""#, r#""timeout": "2s", "name""#, 1);
    let server = Server::of([UNAVAILABLE, UNAVAILABLE, Step::Hang]);
    let client = client(&text, &server);
    let began = Instant::now();
    let (code, _) = end_of(&client, call()).await;
    assert_eq!(server.count(), 2, "half of the tokens is too few for a third");
    assert_eq!(client.handle().throttle().tokens_thousandths(), Some(2_000));
    assert_eq!(code.unwrap(), Code::Unavailable);
    assert_eq!(began.elapsed(), Duration::ZERO);
    let (code, _) = end_of(&client, call()).await;
    assert_eq!((code.unwrap(), server.count()), (Code::DeadlineExceeded, 3));
    assert_eq!(began.elapsed().as_secs(), 2);
}

// SC-6
#[tokio::test(start_paused = true)]
async fn calls_are_unavailable_before_a_config() {
    let server = Server::of([OK]);
    let handle = ServiceConfigHandle::unresolved(ServiceConfig::default());
    let client = ServiceConfigLayer::new(handle.clone()).layer(server.clone());
    let text = |answer: &Response<_>| answer.headers()["grpc-message"].to_str().unwrap().to_owned();
    let answer = client.clone().oneshot(call()).await.unwrap();
    assert_eq!(text(&answer.map(drop)), "no service config has been chosen yet");
    handle.update(ServiceConfig::parse(r#"{"methodConfig": 1}"#)).unwrap_err();
    let answer = client.clone().oneshot(call()).await.unwrap();
    let (head, body) = answer.into_parts();
    assert_eq!(
        text(&Response::from_parts(head.clone(), ())),
        "no valid service config has been supplied yet: methodConfig must be a list, but it is 1"
    );
    assert_eq!(code_of(Response::from_parts(head, body)).await, Code::Unavailable);
    assert_eq!(server.count(), 0);
    handle.use_default();
    ends(&client, Code::Ok, StopReason::Succeeded).await;
    assert_eq!(server.count(), 1);
}

// trap 38
#[tokio::test(start_paused = true)]
async fn refused_call_releases_its_place() {
    let limited = ConcurrencyLimit::new(Server::of([OK]), 1);
    let handle = ServiceConfigHandle::unresolved(ServiceConfig::default());
    let mut client = ServiceConfigLayer::new(handle.clone()).layer(limited);
    let answer = client.ready().await.unwrap().call(call()).await.unwrap();
    assert_eq!(code_of(answer).await, Code::Unavailable);
    handle.use_default();
    let other = timeout(Duration::from_secs(1), client.clone().oneshot(call())).await;
    other.expect("the idle handle holds the place").unwrap();
}

// trap 38
#[tokio::test(start_paused = true)]
async fn late_call_releases_its_place() {
    let server = Server::of([OK]);
    let limited = ConcurrencyLimit::new(server.clone(), 1);
    let mut client = ServiceConfigLayer::new(ServiceConfig::default()).layer(limited);
    let mut late = call();
    late.extensions_mut().insert(Deadline::after(Duration::ZERO));
    let answer = client.ready().await.unwrap().call(late).await.unwrap();
    assert_eq!(code_of(answer).await, Code::DeadlineExceeded);
    assert_eq!(server.count(), 0);
    let other = timeout(Duration::from_secs(1), client.clone().oneshot(call())).await;
    other.expect("the idle handle holds the place").unwrap();
}

// CALL-3
#[tokio::test(start_paused = true)]
async fn caller_precedes_config() {
    let config = retried(4, "0.01s", "[14]");
    let with = |options: CallOptions| {
        let mut call = call();
        call.extensions_mut().insert(options);
        call
    };
    let rows = [
        (CallOptions::new().never_retry(), 1),
        (CallOptions::new().max_attempts(2), 2),
        (CallOptions::new().repeatable(true), 4),
    ];
    for (options, count) in rows {
        let server = Server::of([UNAVAILABLE]);
        end_of(&client(&config, &server), with(options)).await.0.unwrap();
        assert_eq!(server.count(), count);
    }
}

#[tokio::test]
async fn it_can_be_shared_and_shows_what_it_holds() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    fn sent<T: Send>(_: &T) {}
    let server = Server::of([OK]);
    let layer = ServiceConfigLayer::new(ServiceConfig::default());
    shared(&layer);
    let client = layer.layer(tower::service_fn(|_: Request<Body>| async {
        Ok::<_, std::io::Error>(answer(vec![]))
    }));
    shared(&client);
    let mut client = layer.layer(server);
    let call = client.ready().await.unwrap().call(call());
    sent(&call);
    assert!(format!("{call:?}").starts_with("ResponseFuture(ResponseFuture"), "{call:?}");
    let error: Result<_, Box<dyn Error>> = call.await.map_err(Into::into);
    error.unwrap();
    let _ = client.get_ref();
    let _ = client.into_inner();
}

/// The table in the documentation of `RetryPolicy::grpc`.
// CALL-1
#[tokio::test(start_paused = true)]
async fn call_1_grpc_beside_an_empty_config() {
    async fn attempts<C>(client: C, server: &Server, request: Request<Body>) -> usize
    where
        C: Service<Request<Body>, Response = Response<GrpcBody<StreamBody<Frames>>>>,
        C::Error: std::fmt::Debug,
    {
        drop(client.oneshot(request).await.unwrap());
        server.count()
    }
    let codes = (1..=16).map(Code::from_number).map(|code| (Step::Only(code, None), Some(code)));
    let steps = codes.chain([(Step::NoConnection, None), (Step::Lost, None)]);
    for (step, code) in steps {
        // (grpc(), the same if repeatable, an empty config)
        let expected = match (step, code) {
            (Step::NoConnection, _) => [3, 3, 3],
            (_, Some(Code::Unavailable | Code::ResourceExhausted)) => [3, 3, 1],
            (_, Some(Code::DeadlineExceeded) | None) => [1, 3, 1],
            _ => [1, 1, 1],
        };
        let mut repeatable = call();
        repeatable.extensions_mut().insert(CallOptions::new().repeatable(true));
        let servers = [(); 3].map(|()| Server::of([step]));
        let [plain, declared, empty] = &servers;
        let seen = [
            attempts(RetryLayer::grpc().layer(plain.clone()), plain, call()).await,
            attempts(RetryLayer::grpc().layer(declared.clone()), declared, repeatable).await,
            attempts(client("{}", empty), empty, call()).await,
        ];
        assert_eq!(seen, expected, "{code:?}");
    }
}

/// Every kind of failure and policy, and options that ask for more.
// CALL-3, TR-8
#[tokio::test(start_paused = true)]
async fn tr_8_never_retry_turns_off_everything() {
    let unseen = Step::NoConnection;
    for text in [&*retried(4, "0.01s", "[14]"), &hedged(4, "0.01s", "[14]"), "{}"] {
        for step in [UNAVAILABLE, pushed_back("5"), unseen, Step::Lost] {
            let server = Server::of([step]);
            let layer = ServiceConfigLayer::new(parse(text)).never_retry();
            let client = layer.layer(server.clone());
            let mut asking = call();
            let more = CallOptions::new().max_attempts(5).repeatable(true);
            asking.extensions_mut().insert(more.clone());
            let _ = client.clone().oneshot(asking).await;
            let _ = client.with_options(more).oneshot(call()).await;
            assert_eq!(server.count(), 2, "{text}");
        }
    }
}

/// A cap of one attempt leaves the connection that was not made to a method without a policy.
// TR-8
#[tokio::test(start_paused = true)]
async fn tr_8_cap_of_one_is_not_everything() {
    let server = Server::of([Step::NoConnection]);
    let client = ServiceConfigLayer::new(parse("{}")).max_attempts(1).layer(server.clone());
    assert_eq!(end_of(&client, call()).await.0.unwrap(), Code::Unavailable);
    assert_eq!(server.count(), 3);
}

// DL-1
#[tokio::test(start_paused = true)]
async fn dl_1_timeout_counts_without_any_retry() {
    let server = Server::of([Step::Hang]);
    let text = r#"{"methodConfig": [{"name": [{}], "timeout": "2s"}]}"#;
    let client = ServiceConfigLayer::new(parse(text)).never_retry().layer(server.clone());
    let began = Instant::now();
    assert_eq!(end_of(&client, call()).await.0.unwrap(), Code::DeadlineExceeded);
    assert_eq!((server.count(), began.elapsed()), (1, Duration::from_secs(2)));
}

/// Three attempts, retried or hedged, under settings that are made once.
#[tokio::test(start_paused = true)]
async fn settings_of_layer_apply_to_both() {
    for text in [retried(3, "0.01s", "[5]"), hedged(3, "5s", "[5]")] {
        let (seen, events) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(Vec::new())));
        let (classified, observed) = (Arc::clone(&seen), Arc::clone(&events));
        let layer = ServiceConfigLayer::new(parse(&text))
            .protocol(|grpc| {
                grpc.classify(move |outcome: Outcome<'_>| {
                    *classified.lock().unwrap() += 1;
                    (outcome.headers()?.get("grpc-status")? == "10").then(Verdict::not_processed)
                })
            })
            .observe(move |_, event| observed.lock().unwrap().push(event.to_string()));
        let server = Server::of([ABORTED, ABORTED, OK]);
        let client = layer.layer(server.clone());
        client.oneshot(call()).await.unwrap();
        assert_eq!((server.count(), *seen.lock().unwrap()), (3, 3), "{text}");
        assert!(!events.lock().unwrap().is_empty(), "{text}");
    }
}

// CALL-8
#[tokio::test(start_paused = true)]
async fn call_8_cap_of_hedges_is_raised() {
    for (attempts, cap, count) in [(9, None, 5), (9, Some(7), 7), (3, Some(7), 3), (9, Some(2), 2)]
    {
        let server = Server::of([Step::Hang]);
        let text = hedged(attempts, "0.01s", "[]");
        let mut layer = ServiceConfigLayer::new(parse(&text));
        if let Some(cap) = cap {
            layer = layer.max_attempts(cap);
        }
        let hangs = layer.layer(server.clone()).oneshot(call());
        timeout(Duration::from_secs(1), hangs).await.unwrap_err();
        assert_eq!(server.count(), count, "{attempts}, {cap:?}");
    }
}
