//! Spans of calls and attempts, in OpenTelemetry and in `tracing`.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use reattempt::endpoints::Endpoints;
use reattempt::guard::{GuardLayer, Limit, RateLimit};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::observe::TracingObserver;
use reattempt::telemetry::HttpTelemetry;
use reattempt::{RetryBudget, RetryLayer};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::TracingLog;
use reattempt_testing_layers::cluster::{self, Cluster, Does};
use tokio::time::timeout;
use tower::{Layer, ServiceExt, service_fn};

use super::{Reply, get, policy, replies};

/// The failed attempt and its retry are client spans below the span of their call.
#[tokio::test(start_paused = true)]
async fn attempts_are_spans_below_their_call() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let telemetry = HttpTelemetry::new().spans(&provider).boxed_errors();
    let client = telemetry.around(policy()).layer(replies(&[Reply::Status(503), Reply::Status(200)]));
    client.oneshot(get("http://user:secret@one.example:8080/a?token=secret")).await.unwrap();

    let spans = exporter.get_finished_spans().unwrap();
    let [first, second, call] = spans.as_slice() else { panic!("{spans:?}") };
    assert_eq!((&call.span_kind, call.parent_span_id), (&SpanKind::Internal, SpanId::INVALID));
    for attempt in [first, second] {
        assert_eq!(attempt.span_kind, SpanKind::Client);
        assert_eq!(attempt.parent_span_id, call.span_context.span_id());
        assert_eq!(attempt.name, "GET");
        assert_eq!(attribute(attempt, "url.full"), "http://one.example:8080/a");
        assert_eq!(attribute(attempt, "server.port"), "8080");
    }
    assert_eq!(
        (attribute(first, "error.type"), attribute(first, "http.request.resend_count")),
        ("503".into(), "".into())
    );
    assert_eq!((&first.status, &second.status), (&Status::error(""), &Status::Unset));
    assert_eq!(attribute(second, "http.request.resend_count"), "1");
    assert_eq!(attribute(call, "http.request.resend_count"), "1");
    assert!(!format!("{spans:?}").contains("secret"));
}

/// Spans have the real server, beyond the bound of metrics, an IPv6 address without brackets. The method of no RFC is
/// not in their name.
#[tokio::test(start_paused = true)]
async fn spans_have_the_real_server() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let telemetry = HttpTelemetry::new().max_servers(0).spans(&provider).boxed_errors();
    let client = telemetry.around(policy()).layer(replies(&[Reply::Status(200)]));
    for (uri, address, port) in [("http://[2001:DB8::1]:81/", "2001:db8::1", "81"), ("/no-server", "", "")] {
        let made_up = Request::builder().method("MADE-UP").uri(uri).body(Full::<Bytes>::default()).unwrap();
        client.clone().oneshot(made_up).await.unwrap();
        let spans = exporter.get_finished_spans().unwrap();
        exporter.reset();
        assert_eq!(spans.len(), 2);
        for span in &spans {
            assert_eq!((&*span.name, &*attribute(span, "http.request.method")), ("HTTP", "_OTHER"));
            assert_eq!((&*attribute(span, "server.address"), &*attribute(span, "server.port")), (address, port));
        }
    }
}

/// Spans of `tracing` have the same server and name.
#[tokio::test(start_paused = true)]
async fn tracing_spans_have_the_real_server() {
    let log = TracingLog::default();
    let _guard = log.subscribe();
    let telemetry = HttpTelemetry::new().max_servers(0).tracing().boxed_errors();
    let layer = telemetry.around(policy().observe_with(TracingObserver));
    let inner = replies(&[Reply::Status(200)]).map_response(|response| {
        tracing::info!("below");
        response
    });
    let made_up = Request::builder().method("MADE-UP").uri("http://[::1]:81/").body(Full::<Bytes>::default()).unwrap();
    layer.layer(inner).oneshot(made_up).await.unwrap();
    let lines = log.lines();
    let below = &lines[0];
    assert!(below.contains("http.request{otel.name=\"HTTP\""), "{below}");
    assert!(below.contains("server.address=\"::1\" server.port=81"), "{below}");
}

fn attribute(span: &SpanData, name: &str) -> String {
    let found = span.attributes.iter().find(|attribute| attribute.key.as_str() == name);
    found.map(|attribute| attribute.value.to_string()).unwrap_or_default()
}

/// The span of an attempt has the name of its endpoint, whether a retry, a hedge, a guard that waits or a layer
/// that calls from a poll has sent it. The span of the call has none.
// D-16
#[tokio::test(start_paused = true)]
async fn spans_have_the_endpoint() {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder().with_simple_exporter(exporter.clone()).build();
    let telemetry = HttpTelemetry::new().spans(&provider).boxed_errors();
    let budget = RetryBudget::unlimited;
    let retries = RetryLayer::new(cluster::policy(3).budget(budget()));
    let hedges = HedgePolicy::http().delay(ms(20)).max_attempts(3).budget(budget()).boxed_errors();
    let limit = RateLimit::new(Limit::per_second(1), 1).queue(8, secs(9));
    // In the last case, the limit of the case before has no token left.
    for case in [0, 1, 2, 2, 3] {
        let cluster = Cluster::of(if case == 1 { [Does::Hang; 3] } else { [Does::Status(408); 3] });
        let balanced = cluster.balanced();
        match case {
            0 => drop(telemetry.around(retries.clone()).layer(balanced).oneshot(get("/")).await),
            1 => {
                let client = telemetry.around(HedgeLayer::new(hedges.clone())).layer(balanced);
                let _given_up = timeout(ms(100), client.oneshot(get("/"))).await;
            }
            3 => {
                // It calls the set only from a poll.
                let later = service_fn(move |request| {
                    let balanced = balanced.clone();
                    async move { balanced.oneshot(request).await }
                });
                drop(telemetry.around(retries.clone()).layer(later).oneshot(get("/")).await);
            }
            _ => {
                let guarded = GuardLayer::http(limit.clone()).layer(balanced);
                drop(telemetry.around(retries.clone()).layer(guarded).oneshot(get("/")).await);
            }
        }
        let (calls, mut attempts): (Vec<_>, Vec<_>) =
            exporter.get_finished_spans().unwrap().into_iter().partition(|span| span.span_kind == SpanKind::Internal);
        exporter.reset();
        attempts.sort_by_key(|span| attribute(span, "http.request.resend_count"));
        let names: Vec<_> = attempts.iter().map(|span| attribute(span, "reattempt.endpoint")).collect();
        assert_eq!(names, cluster.seen(), "{case}");
        assert_eq!((names.len(), attribute(&calls[0], "reattempt.endpoint").as_str()), (3, ""), "{case}");
    }
}

/// The log of an endpoint's client is inside a span that has the endpoint's name.
// D-16
#[tokio::test(start_paused = true)]
async fn tracing_span_has_the_endpoint() {
    let log = TracingLog::default();
    let _guard = log.subscribe();
    let inner = replies(&[Reply::Status(200)]).map_response(|response| {
        tracing::info!("below");
        response
    });
    let balanced = Endpoints::list(["one"]).unwrap().connect(|_| inner.clone()).http();
    let client = HttpTelemetry::new().tracing().boxed_errors().around(policy()).layer(balanced);
    client.oneshot(get("http://service/")).await.unwrap();
    let lines = log.lines();
    assert!(lines[0].ends_with("below") && lines[0].contains("reattempt.endpoint=\"one\""), "{lines:?}");
}

/// The events of a call are inside its span, and those of the inner service inside the span of their attempt.
#[tokio::test(start_paused = true)]
async fn log_lines_are_inside_their_spans() {
    let log = TracingLog::default();
    let _guard = log.subscribe();
    let telemetry = HttpTelemetry::new().tracing().boxed_errors();
    let layer = telemetry.around(policy().observe_with(TracingObserver));
    let inner = replies(&[Reply::Status(503), Reply::Status(200)]).map_response(|response| {
        tracing::info!("below");
        response
    });
    layer.layer(inner).oneshot(get("http://one.example/a?token=secret")).await.unwrap();

    let lines = log.lines();
    let [below, failed, again, second, succeeded] = lines.as_slice() else { panic!("{lines:?}") };
    let call = "http.call{otel.name=\"GET\" otel.kind=\"internal\"";
    let attempt = ":http.request{otel.name=\"GET\" otel.kind=\"client\"";
    for line in [below, second] {
        assert!(line.contains(call) && line.contains(attempt) && line.ends_with("below"), "{line}");
    }
    assert!(second.contains("http.request.resend_count=1"), "{second}");
    assert!(below.contains("url.full=\"http://one.example/a\""), "{below}");
    for line in [failed, again, succeeded] {
        assert!(line.contains(call) && !line.contains(attempt), "{line}");
    }
}
