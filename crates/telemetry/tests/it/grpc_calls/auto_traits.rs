//! Tests that the metrics types can be sent and shared like the service that they measure.

use opentelemetry_sdk::metrics::SdkMeterProvider;
use reattempt::error::BoxedError;
use reattempt::grpc::metrics::{GrpcMetrics, MeasuredBody, ResponseFuture as MeasuredFuture, RetryMetric};
use reattempt::telemetry::{Measured, MeasuringLayer};
use std::fmt::Debug;

fn all<T: Send + Sync + Unpin + Clone + Debug>() {}
fn send_unpin<T: Send + Unpin + Debug>() {}

#[test]
fn they_are_send_and_sync_and_clone() {
    all::<GrpcMetrics>();
    all::<MeasuringLayer<GrpcMetrics<BoxedError>>>();
    all::<Measured<(), GrpcMetrics>>();
    all::<RetryMetric>();
    send_unpin::<MeasuredBody<()>>();
    send_unpin::<MeasuredFuture<std::future::Ready<()>>>();
    let metrics = GrpcMetrics::new(&SdkMeterProvider::default(), "dns:///one");
    assert_eq!(format!("{metrics:?}"), r#"GrpcMetrics { target: "dns:///one", .. }"#);
}
