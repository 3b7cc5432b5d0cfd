//! Instruments of calls, attempts and budgets.

use std::time::Duration;

use http::{Request, Response};
use reattempt::endpoints::EndpointsLayer;
use reattempt::error::BoxedError;
use reattempt::guard::{Bulkhead, GuardLayer};
use reattempt::hedge::HedgePolicy;
use reattempt::telemetry::{BudgetMetrics, HttpTelemetry, Measured, MeasuringLayer, ResponseFuture};
use reattempt::{PeekBodyLayer, RetryBudget, RetryPolicy};
use reattempt_schedule_fixed::Constant;
use reattempt_testing_layers::calls::failing;
use reattempt_testing_layers::metrics::Reader;
use tokio::time::timeout;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt, service_fn};

use super::{Reply, get, policy, replies};

const REQUESTS: &str = "http.client.request.duration";
const CALLS: &str = "reattempt.http.call.duration";
const RESENDS: &str = "reattempt.http.call.resends";
const OF: &str = "http.request.method=GET";
const TO: &str = "server.address=one.example server.port=80";

fn telemetry(reader: &Reader) -> HttpTelemetry<BoxedError> {
    HttpTelemetry::new().metrics(&reader.provider).boxed_errors()
}

/// Returns the labels of a GET to one.example with this error and this status.
fn labels(error: Option<&str>, status: Option<u16>) -> String {
    let error = error.map(|error| format!("error.type={error} ")).unwrap_or_default();
    let status = status.map(|status| format!("http.response.status_code={status} network.protocol.version=1.1 "));
    format!("{error}{OF} {}{TO}", status.unwrap_or_default())
}

fn line(labels: String, value: u64) -> (String, u64) {
    (labels, value)
}

/// Each attempt is one request by the conventions, and the call has a measurement of its own.
#[tokio::test(start_paused = true)]
async fn retried_call_is_measured_once() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let layer = telemetry.around(policy().observe_with(telemetry.clone()));
    let client = layer.layer(replies(&[Reply::Status(503), Reply::Refused, Reply::Status(200)]));
    client.oneshot(get("http://one.example/a")).await.unwrap();
    let attempts = [
        line(labels(Some("503"), Some(503)), 1),
        line(labels(Some("connect"), None), 1),
        line(labels(None, Some(200)), 1),
    ];
    assert_eq!(reader.counted(REQUESTS), attempts);
    assert_eq!(reader.counted(CALLS), [line(labels(None, Some(200)), 1)]);
    assert_eq!(reader.counted(RESENDS), [line(format!("{OF} {TO}"), 1)]);
    assert_eq!(reader.counted("reattempt.retries"), [line(String::new(), 2)]);
    assert_eq!(reader.counted("reattempt.given_up"), []);
    assert_eq!(reader.milliseconds(CALLS), 230);
    assert_eq!(reader.milliseconds(REQUESTS), 30);
}

/// The counter of failed calls has the reason why no attempt followed.
#[tokio::test(start_paused = true)]
async fn failed_call_counts_its_reason() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let policy = policy().max_attempts(2).observe_with(telemetry.clone());
    let client = telemetry.around(policy).layer(replies(&[Reply::Status(503)]));
    client.oneshot(get("http://one.example/a")).await.unwrap();
    assert_eq!(reader.counted("reattempt.given_up"), [line("reason=attempts_exhausted".to_owned(), 1)]);
    assert_eq!(reader.counted(CALLS), [line(labels(Some("503"), Some(503)), 1)]);
}

/// Methods and servers that callers make up share one label each.
#[tokio::test(start_paused = true)]
async fn labels_are_bounded() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader).max_servers(2);
    let client = telemetry.around(policy()).layer(replies(&[Reply::Status(200)]));
    // A name that is too long for a host takes no place of a server.
    client.clone().oneshot(get(&format!("http://{}", "l".repeat(256)))).await.unwrap();
    for uri in ["http://a", "http://A:80", "https://[::B]:8443", "http://c", "http://d", "/no-server"] {
        client.clone().oneshot(get(uri)).await.unwrap();
    }
    let made_up = Request::builder().method("MADE-UP").uri("http://user:secret@a/");
    client.clone().oneshot(made_up.body(Default::default()).unwrap()).await.unwrap();
    let labels = |method: &str, server: &str| {
        format!("http.request.method={method} http.response.status_code=200 network.protocol.version=1.1 {server}")
    };
    let expected = [
        line(labels("GET", "server.address=::b server.port=8443"), 1),
        line(labels("GET", "server.address=_OTHER"), 4),
        line(labels("GET", "server.address=a server.port=80"), 2),
        line(labels("_OTHER", "server.address=a server.port=80"), 1),
    ];
    assert_eq!(reader.counted(CALLS), expected);
}

/// A time limit, a guard's refusal and a dropped call have error types of their own.
#[tokio::test(start_paused = true)]
async fn local_ends_have_error_types() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let never = || replies(&[Reply::Never]);

    let limited = policy().max_attempts(1).attempt_timeout(Duration::from_millis(50));
    telemetry.around(limited).layer(never()).oneshot(get("http://one.example/")).await.unwrap_err();
    assert_eq!(reader.counted(CALLS), [line(labels(Some("timeout"), None), 1)]);
    // The limit drops the attempt.
    assert_eq!(reader.counted(REQUESTS), [line(labels(Some("cancelled"), None), 1)]);

    let guarded = ServiceBuilder::new().layer(policy().max_attempts(1)).layer(GuardLayer::http(Bulkhead::new(0)));
    let attempts = telemetry.around(guarded);
    attempts.layer(never()).oneshot(get("http://one.example/")).await.unwrap_err();
    assert!(reader.counted(CALLS).contains(&line(labels(Some("refused"), None), 1)));

    let client = telemetry.around(policy()).layer(never());
    timeout(Duration::from_millis(5), client.oneshot(get("http://one.example/"))).await.unwrap_err();
    assert!(reader.counted(CALLS).contains(&line(labels(Some("cancelled"), None), 1)));
}

/// A request without extensions belongs to its call, too.
#[tokio::test(start_paused = true)]
async fn reqwest_call_knows_its_attempts() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let inner = service_fn(async |request: reqwest::Request| match request.url().path() {
        "/down" => Ok(http::Response::builder().status(503).body("")?.into()),
        _ => Ok::<reqwest::Response, BoxError>(http::Response::new("").into()),
    });
    let client = telemetry.around(policy()).layer(inner);
    for path in ["down", "up"] {
        let url = format!("http://one.example/{path}");
        client.clone().oneshot(reqwest::Client::new().get(url).build().unwrap()).await.unwrap();
    }
    assert_eq!(reader.counted(RESENDS), [line(format!("{OF} {TO}"), 1)]);
    assert_eq!(reader.counted(CALLS).iter().map(|(_, count)| count).sum::<u64>(), 2);
    assert_eq!(reader.counted(REQUESTS).iter().map(|(_, count)| count).sum::<u64>(), 4);
}

/// Hedges are attempts of their call, and the losing one was cancelled.
#[tokio::test(start_paused = true)]
async fn hedge_is_an_attempt_of_its_call() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let hedged = HedgePolicy::http().delay(Duration::from_millis(20)).boxed_errors();
    let client = telemetry.around(hedged).layer(replies(&[Reply::Never, Reply::Status(200)]));
    client.oneshot(get("http://one.example/")).await.unwrap();
    let attempts = [line(labels(Some("cancelled"), None), 1), line(labels(None, Some(200)), 1)];
    assert_eq!(reader.counted(REQUESTS), attempts);
    assert_eq!(reader.counted(RESENDS), [line(format!("{OF} {TO}"), 1)]);
}

/// An attempt has the server of its endpoint, and the call that of its request.
#[tokio::test(start_paused = true)]
async fn attempts_have_their_endpoints() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let servers = EndpointsLayer::http(["http://one.example", "http://two.example:81"]).unwrap();
    let layer = telemetry.around(ServiceBuilder::new().layer(policy()).layer(servers));
    let client = layer.layer(replies(&[Reply::Status(503), Reply::Status(200)]));
    client.oneshot(get("http://one.example/")).await.unwrap();
    assert_eq!(reader.counted(CALLS), [line(labels(None, Some(200)), 1)]);
    let attempts = reader.counted(REQUESTS);
    for server in ["server.address=one.example server.port=80", "server.address=two.example server.port=81"] {
        let of_server = attempts.iter().filter(|(labels, count)| labels.ends_with(server) && *count == 1);
        assert_eq!(of_server.count(), 1, "{attempts:?}");
    }
}

/// Two telemetries around each other each count every attempt of the call.
#[tokio::test(start_paused = true)]
async fn nested_telemetries_each_measure() {
    let (one, two) = (Reader::new(), Reader::new());
    let (outer, inner) = (telemetry(&one), telemetry(&two));
    let layer = outer.around(inner.around(policy()));
    layer.layer(replies(&[Reply::Status(503), Reply::Status(200)])).oneshot(get("http://one.example/")).await.unwrap();
    for reader in [one, two] {
        assert_eq!(reader.counted(RESENDS), [line(format!("{OF} {TO}"), 1)]);
        assert_eq!(reader.counted(CALLS), [line(labels(None, Some(200)), 1)]);
    }
}

/// A budget shows its refusals and its lowest bucket.
#[tokio::test(start_paused = true)]
async fn budget_is_measured() {
    let reader = Reader::new();
    let budget = RetryBudget::quota(5, 5).capacity(5.0);
    BudgetMetrics::new(&reader.provider).record("stock", &budget);
    let policy = RetryPolicy::http().backoff(Constant::immediate()).budget(budget.clone()).boxed_errors();
    let client = policy.layer(replies(&[Reply::Status(503)]));
    client.oneshot(get("http://one.example/")).await.unwrap();
    let of = "name=stock".to_owned();
    assert_eq!(reader.counted("reattempt.budget.refusals"), [line(of.clone(), budget.refusals())]);
    assert_eq!(reader.counted("reattempt.budget.destinations"), [line(of, 1)]);
    assert!(budget.refusals() > 0);
}

#[test]
fn types_are_send_and_sync_and_clone() {
    fn all<T: Send + Sync + Clone + std::fmt::Debug>() {}
    fn send<T: Send + Sync + std::fmt::Debug>() {}
    all::<HttpTelemetry>();
    all::<MeasuringLayer<HttpTelemetry<BoxedError>>>();
    all::<Measured<(), HttpTelemetry>>();
    all::<BudgetMetrics>();
    send::<ResponseFuture<std::future::Ready<()>>>();
    assert_eq!(format!("{:?}", HttpTelemetry::new()), "HttpTelemetry { outputs: 0, .. }");
}

/// A body that breaks while it is read as part of its attempt has the error type of a lost connection.
// B-5
#[tokio::test(start_paused = true)]
async fn broken_body_has_error_type() {
    let reader = Reader::new();
    let telemetry = telemetry(&reader);
    let torn = service_fn(|_| async { Ok::<_, BoxError>(Response::new(failing())) });
    let client = telemetry.around(policy().max_attempts(2)).layer(PeekBodyLayer::new().layer(torn));
    client.oneshot(get("http://one.example/")).await.unwrap();
    assert_eq!(reader.counted(REQUESTS), [line(labels(Some("network"), Some(200)), 2)]);
    assert_eq!(reader.counted(CALLS), [line(labels(Some("network"), Some(200)), 1)]);
}
