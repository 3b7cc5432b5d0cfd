//! Calls through the layers of `reattempt::telemetry`, beside the same calls without them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use reattempt::RetryPolicy;
use reattempt::telemetry::HttpTelemetry;
use tower::ServiceBuilder;

use super::{Row, Work, above, alone, call};
use crate::contenders::ours;
use crate::inner::Answers;
use crate::requests::fresh;

pub(super) const ROWS: &[Row] = &[Row {
    name: "telemetry",
    title: "first-time success, fresh, telemetry of calls and attempts",
    operations: 500,
    counted: true,
    timed: false,
    contenders: &[
        alone("bare", || call::each(Answers, fresh)),
        above("ours-off", "bare", || call::each(ours(Answers), fresh)),
        above("ours-no-output", "bare", || measured(HttpTelemetry::new(), ())),
        above("ours-metrics", "bare", || {
            let (provider, _) = metrics();
            measured(HttpTelemetry::new().metrics(&provider), provider)
        }),
        above("ours-spans", "bare", || {
            let (provider, _) = spans();
            measured(HttpTelemetry::new().spans(&provider), provider)
        }),
    ],
}];

/// Makes calls with this telemetry. The provider is kept, because its drop ends the telemetry.
fn measured<P: 'static>(telemetry: HttpTelemetry, provider: P) -> Work {
    let client = ServiceBuilder::new().layer(telemetry.around(RetryPolicy::http())).service(Answers);
    let mut work = call::each(client, fresh);
    Box::new(move |operations| {
        let _provider = &provider;
        work(operations);
    })
}

/// Returns a provider that aggregates, and whose thread exports once a minute.
fn metrics() -> (SdkMeterProvider, InMemoryMetricExporter) {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    (SdkMeterProvider::builder().with_reader(reader).build(), exporter)
}

/// Returns a provider that counts the spans that end, and exports none.
fn spans() -> (SdkTracerProvider, Counter) {
    let counter = Counter::default();
    (SdkTracerProvider::builder().with_simple_exporter(counter.clone()).build(), counter)
}

#[derive(Debug, Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl SpanExporter for Counter {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.fetch_add(batch.len(), Ordering::Relaxed);
        Ok(())
    }
}

/// Panics unless a call has two spans, and its duration is exported.
pub(super) fn check() {
    let (provider, counter) = spans();
    measured(HttpTelemetry::new().spans(&provider), provider)(1);
    assert_eq!(counter.0.load(Ordering::Relaxed), 2);

    let (provider, exporter) = metrics();
    measured(HttpTelemetry::new().metrics(&provider), provider.clone())(1);
    assert!(provider.force_flush().is_ok());
    let exported = exporter.get_finished_metrics().unwrap_or_default();
    let scopes = exported.iter().flat_map(|metrics| metrics.scope_metrics());
    let names: Vec<_> = scopes.flat_map(|scope| scope.metrics().map(|metric| metric.name().to_owned())).collect();
    for name in ["http.client.request.duration", "reattempt.http.call.duration"] {
        assert!(names.iter().any(|exported| exported == name), "{names:?}");
    }
}
