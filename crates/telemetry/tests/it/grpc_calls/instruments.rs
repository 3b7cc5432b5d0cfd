//! Tests of the instruments: names, units, bounds and labels.

use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use reattempt::RetryLayer;
use reattempt::grpc::metrics::RetryMetric;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_grpc::Code;
use reattempt_testing_layers::grpc::{GrpcServer, call, call_with, ends_with, ms, policy, read, trailers_only};
use reattempt_testing_layers::metrics::{Reader, TARGET};
use reattempt_testing_layers::resets::Resets;
use tonic::GrpcMethod;
use tower::{ServiceBuilder, ServiceExt};

const LATENCIES: &str = "0 0.00001 0.00005 0.0001 0.0003 0.0006 0.0008 0.001 0.002 0.003 0.004 0.005 0.006 \
    0.008 0.01 0.013 0.016 0.02 0.025 0.03 0.04 0.05 0.065 0.08 0.1 0.13 0.16 0.2 0.25 0.3 0.4 0.5 0.65 \
    0.8 1 2 5 10 20 50 100";
const SIZES: &str = "0 1024 2048 4096 16384 65536 262144 1048576 4194304 16777216 67108864 268435456 \
    1073741824 4294967296";

// OBS-2, OBS-3, OBS-4
#[tokio::test(start_paused = true)]
async fn names_units_and_bounds_are_grpcs() {
    let reader = Reader::new();
    let metrics = reader.metrics().enable(RetryMetric::ALL);
    // A retry, a transparent one, and a hedge.
    let refused = Resets::new(h2::Reason::REFUSED_STREAM, 1).await;
    let server = GrpcServer::by(move |number| match number {
        1 => (0, Err(refused.next())),
        2 => (0, Ok(trailers_only(Code::Unavailable))),
        _ => (0, Ok(ends_with(Code::Ok))),
    });
    let retried = metrics.around(RetryLayer::new(policy(1)));
    let retried = ServiceBuilder::new().layer(retried).service(server);
    read(retried.oneshot(call()).await.unwrap()).await;
    let slow = GrpcServer::by(|_| (30, Ok(ends_with(Code::Ok))));
    let hedged = metrics.around(HedgeLayer::new(HedgePolicy::grpc().delay(ms(10))));
    let hedged = ServiceBuilder::new().layer(hedged).service(slow);
    read(hedged.oneshot(call()).await.unwrap()).await;

    let all = reader.all();
    let scopes: Vec<_> = all.scope_metrics().collect();
    assert_eq!(scopes.len(), 1);
    let scope = scopes[0].scope();
    assert_eq!((scope.name(), scope.version()), ("reattempt", Some(env!("CARGO_PKG_VERSION"))));
    let mut shown: Vec<_> = scopes[0]
        .metrics()
        .map(|metric| {
            let (kind, bounds) = match metric.data() {
                AggregatedMetrics::U64(MetricData::Sum(sum)) if sum.is_monotonic() => ("counter", Vec::new()),
                AggregatedMetrics::U64(MetricData::Histogram(histogram)) => {
                    ("whole", histogram.data_points().next().unwrap().bounds().collect())
                }
                AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
                    ("fraction", histogram.data_points().next().unwrap().bounds().collect())
                }
                other => panic!("{other:?}"),
            };
            assert!(!metric.description().is_empty());
            let bounds: Vec<_> = bounds.iter().map(f64::to_string).collect();
            format!("{} {} {kind}: {}", metric.name(), metric.unit(), bounds.join(" "))
        })
        .collect();
    shown.sort();
    let expected = [
        format!("grpc.client.attempt.duration s fraction: {LATENCIES}"),
        format!("grpc.client.attempt.rcvd_total_compressed_message_size By whole: {SIZES}"),
        format!("grpc.client.attempt.sent_total_compressed_message_size By whole: {SIZES}"),
        "grpc.client.attempt.started {attempt} counter: ".to_owned(),
        format!("grpc.client.call.duration s fraction: {LATENCIES}"),
        "grpc.client.call.hedges {hedge} whole: 1 2 3 4 5".to_owned(),
        "grpc.client.call.retries {retry} whole: 1 2 3 4 5".to_owned(),
        format!("grpc.client.call.retry_delay s fraction: {LATENCIES}"),
        "grpc.client.call.transparent_retries {transparent_retry} whole: 1 2 3 4 5 10".to_owned(),
    ];
    assert_eq!(shown, expected);
}

/// Returns the labels `grpc.method` of such a call.
async fn method_of(reader: Reader, metrics: reattempt::grpc::metrics::GrpcMetrics, generated: bool) -> String {
    let server = GrpcServer::at_once(|_| ends_with(Code::Ok));
    let retried = metrics.around(RetryLayer::new(policy(1)));
    let client = ServiceBuilder::new().layer(retried).service(server);
    let call = match generated {
        true => call_with(GrpcMethod::new("own.Service", "Method")),
        false => call(),
    };
    read(client.oneshot(call).await.unwrap()).await;
    assert_eq!(reader.labels("grpc.target"), [TARGET]);
    let methods = reader.labels("grpc.method");
    assert_eq!(methods.len(), 1, "{methods:?}");
    methods.concat()
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn only_generated_methods_are_named() {
    let reader = Reader::new();
    let metrics = reader.metrics();
    assert_eq!(method_of(reader, metrics, true).await, "own.Service/Method");
    let reader = Reader::new();
    let metrics = reader.metrics();
    assert_eq!(method_of(reader, metrics, false).await, "other");
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn allowed_other_methods_are_named() {
    for (allowed, shown) in [("service/method", "service/method"), ("service/another", "other")] {
        let reader = Reader::new();
        let metrics = reader.metrics().generic_methods(move |name| name == allowed);
        assert_eq!(method_of(reader, metrics, false).await, shown);
    }
    let reader = Reader::new();
    let metrics = reader.metrics().generic_methods(|_| false);
    assert_eq!(method_of(reader, metrics, true).await, "own.Service/Method");
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn retries_are_not_measured_by_default() {
    let server = || {
        GrpcServer::at_once(|number| match number {
            1 => trailers_only(Code::Unavailable),
            _ => ends_with(Code::Ok),
        })
    };
    let always = [
        "grpc.client.attempt.duration",
        "grpc.client.attempt.rcvd_total_compressed_message_size",
        "grpc.client.attempt.sent_total_compressed_message_size",
        "grpc.client.attempt.started",
        "grpc.client.call.duration",
    ];
    let reader = Reader::new();
    let retried = reader.metrics().around(RetryLayer::new(policy(1)));
    let client = ServiceBuilder::new().layer(retried).service(server());
    read(client.oneshot(call()).await.unwrap()).await;
    assert_eq!(reader.names(), always);

    let reader = Reader::new();
    let metrics = reader.metrics().enable([RetryMetric::Retries]);
    let client = ServiceBuilder::new().layer(metrics.around(RetryLayer::new(policy(1))));
    read(client.service(server()).oneshot(call()).await.unwrap()).await;
    assert_eq!(reader.names(), [&always[..], &["grpc.client.call.retries"]].concat());
}
