//! The instruments, with gRPC's names, units and bucket boundaries.

// OBS-2, OBS-3, OBS-4

use std::sync::Arc;

use opentelemetry::InstrumentationScope;
use opentelemetry::metrics::{Counter, Histogram, Meter, MeterProvider};

/// The bucket boundaries for durations, in seconds.
const LATENCIES: [f64; 41] = [
    0.0, 0.00001, 0.00005, 0.0001, 0.0003, 0.0006, 0.0008, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.008, 0.01,
    0.013, 0.016, 0.02, 0.025, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.3, 0.4, 0.5, 0.65, 0.8,
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0,
];

/// The bucket boundaries for sizes, in bytes.
const SIZES: [f64; 14] = [
    0.0,
    1024.0,
    2048.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
    268_435_456.0,
    1_073_741_824.0,
    4_294_967_296.0,
];

const RETRIES: [f64; 5] = [1.0, 2.0, 3.0, 4.0, 5.0];
const TRANSPARENT_RETRIES: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0];

/// An optional metric of a call's retries, with the labels method and target (gRPC's proposal A96, still experimental).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryMetric {
    /// `grpc.client.call.retries`, `{retry}`: the number of retries, for calls that had any.
    Retries,
    /// `grpc.client.call.transparent_retries`, `{transparent_retry}`: the number of attempts that replaced an
    /// unprocessed one, for calls that had any.
    TransparentRetries,
    /// `grpc.client.call.hedges`, `{hedge}`: the number of hedges, for calls that had any.
    Hedges,
    /// `grpc.client.call.retry_delay`, `s`: the time that a call spent without an attempt in flight, even if no attempt
    /// followed. It is 0 for a call that never waited.
    RetryDelay,
}

impl RetryMetric {
    /// All retry metrics.
    pub const ALL: [Self; 4] = [Self::Retries, Self::TransparentRetries, Self::Hedges, Self::RetryDelay];
}

/// A predicate that returns `true` if a method is recorded by name.
pub(super) type MethodFilter = dyn Fn(&str) -> bool + Send + Sync;

/// The instruments for all calls of a client.
#[derive(Clone)]
pub(super) struct GrpcInstruments {
    meter: Meter,
    pub(super) target: Arc<str>,
    pub(super) generic_methods: Option<Arc<MethodFilter>>,
    pub(super) attempts_started: Counter<u64>,
    pub(super) attempt_duration: Histogram<f64>,
    pub(super) attempt_sent: Histogram<u64>,
    pub(super) attempt_received: Histogram<u64>,
    pub(super) call_duration: Histogram<f64>,
    pub(super) retries: Option<Histogram<u64>>,
    pub(super) transparent_retries: Option<Histogram<u64>>,
    pub(super) hedges: Option<Histogram<u64>>,
    pub(super) retry_delay: Option<Histogram<f64>>,
}

impl GrpcInstruments {
    pub(super) fn new(provider: &dyn MeterProvider, target: Arc<str>) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        Self {
            target,
            generic_methods: None,
            attempts_started: meter
                .u64_counter("grpc.client.attempt.started")
                .with_unit("{attempt}")
                .with_description("Attempts begun, whether they have ended or not")
                .build(),
            attempt_duration: seconds(
                &meter,
                "grpc.client.attempt.duration",
                "Time from the beginning of an attempt to its end",
            ),
            attempt_sent: whole(
                &meter,
                "grpc.client.attempt.sent_total_compressed_message_size",
                ("By", &SIZES),
                "Bytes of all messages that an attempt sent, without framing",
            ),
            attempt_received: whole(
                &meter,
                "grpc.client.attempt.rcvd_total_compressed_message_size",
                ("By", &SIZES),
                "Bytes of all messages that an attempt received, without framing",
            ),
            call_duration: seconds(
                &meter,
                "grpc.client.call.duration",
                "Time from the beginning of a call to its end, with all its attempts",
            ),
            retries: None,
            transparent_retries: None,
            hedges: None,
            retry_delay: None,
            meter,
        }
    }

    pub(super) fn enable(&mut self, metric: RetryMetric) {
        let meter = &self.meter;
        match metric {
            RetryMetric::Retries => {
                self.retries = Some(whole(
                    meter,
                    "grpc.client.call.retries",
                    ("{retry}", &RETRIES),
                    "Retries of a call that had any",
                ));
            }
            RetryMetric::TransparentRetries => {
                self.transparent_retries = Some(whole(
                    meter,
                    "grpc.client.call.transparent_retries",
                    ("{transparent_retry}", &TRANSPARENT_RETRIES),
                    "Transparent retries of a call that had any",
                ));
            }
            RetryMetric::Hedges => {
                self.hedges = Some(whole(
                    meter,
                    "grpc.client.call.hedges",
                    ("{hedge}", &RETRIES),
                    "Hedges of a call that had any",
                ));
            }
            RetryMetric::RetryDelay => {
                self.retry_delay = Some(seconds(
                    meter,
                    "grpc.client.call.retry_delay",
                    "Time that a call waited for another attempt while none was under way",
                ));
            }
        }
    }
}

fn seconds(meter: &Meter, name: &'static str, description: &'static str) -> Histogram<f64> {
    let builder = meter.f64_histogram(name).with_unit("s").with_description(description);
    builder.with_boundaries(LATENCIES.to_vec()).build()
}

fn whole(
    meter: &Meter,
    name: &'static str,
    (unit, bounds): (&'static str, &[f64]),
    description: &'static str,
) -> Histogram<u64> {
    let builder = meter.u64_histogram(name).with_unit(unit).with_description(description);
    builder.with_boundaries(bounds.to_vec()).build()
}
