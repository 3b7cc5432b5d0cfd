//! The OpenTelemetry instruments, with the names, units and bucket boundaries from OpenTelemetry's conventions.

use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use reattempt_core::StopReason;
use reattempt_engine::observe::Event;
use reattempt_engine::report::AttemptOutcome;

use super::labels::{OTHER, Server};
use super::layer::Side;
use super::output::{Begun, End, Open, Output};

/// The bucket boundaries for durations that the conventions recommend, in seconds.
const SECONDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

const RESENDS: [f64; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0];

#[derive(Clone)]
pub(super) struct HttpInstruments {
    requests: Histogram<f64>,
    calls: Histogram<f64>,
    resends: Histogram<u64>,
    retries: Counter<u64>,
    replacements: Counter<u64>,
    failures: Counter<u64>,
    causes: Counter<u64>,
    given_up: Counter<u64>,
}

impl HttpInstruments {
    pub(super) fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        let seconds = |name: &'static str, description: &'static str| {
            let builder = meter.f64_histogram(name).with_unit("s").with_description(description);
            builder.with_boundaries(SECONDS.to_vec()).build()
        };
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            requests: seconds("http.client.request.duration", "Duration of HTTP client requests."),
            calls: seconds("reattempt.http.call.duration", "Duration of HTTP calls with all their attempts"),
            resends: meter
                .u64_histogram("reattempt.http.call.resends")
                .with_unit("{resend}")
                .with_description("Attempts after the first of a call that had any")
                .with_boundaries(RESENDS.to_vec())
                .build(),
            retries: counter("reattempt.retries", "{retry}", "Retries and hedges that were granted"),
            replacements: counter("reattempt.replacements", "{attempt}", "Attempts that replaced an unprocessed one"),
            failures: counter("reattempt.failures", "{attempt}", "Attempts that failed, and might succeed if repeated"),
            causes: counter("reattempt.causes", "{cause}", "Causes of failures that several calls may share"),
            given_up: counter("reattempt.given_up", "{call}", "Calls that ended in a failure"),
        }
    }
}

impl Output for HttpInstruments {
    fn begin(&self, begun: &Begun<'_>) -> Box<dyn Open> {
        let mut labels = Vec::with_capacity(6);
        labels.push(KeyValue::new("http.request.method", begun.method));
        labels.extend(server(begun.server));
        Box::new(Measurement { instruments: self.clone(), side: begun.side, labels })
    }

    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::AttemptFailed { outcome: AttemptOutcome::Failed { failure, cause, .. }, .. } => {
                self.failures.add(1, &[KeyValue::new("kind", failure.kind().to_string())]);
                if let Some(cause) = cause.as_ref().filter(|cause| cause.is_first()) {
                    self.causes.add(1, &[KeyValue::new("cause", cause.name())]);
                }
            }
            Event::WillRetry { proof, .. } => {
                let proof = proof.map(|proof| KeyValue::new("proof", proof.name()));
                self.retries.add(1, proof.as_slice());
            }
            Event::WillReplace { proof, .. } => self.replacements.add(1, &[KeyValue::new("proof", proof.name())]),
            Event::GaveUp { reason, .. } => self.given_up.add(1, &[KeyValue::new("reason", word(*reason))]),
            _ => {}
        }
    }
}

/// Returns the labels of a server.
pub(super) fn server(server: &Server) -> impl Iterator<Item = KeyValue> {
    let address = KeyValue::new("server.address", std::sync::Arc::clone(&server.address));
    let port = server.port.map(|port| KeyValue::new("server.port", i64::from(port)));
    [address].into_iter().chain(port)
}

/// Returns the labels for an outcome.
pub(super) fn ended(end: &End) -> impl Iterator<Item = KeyValue> {
    let status = end.status.map(|status| KeyValue::new("http.response.status_code", i64::from(status)));
    let version = end.version.map(|version| KeyValue::new("network.protocol.version", version));
    let error = end.error.clone().map(|error| KeyValue::new("error.type", error));
    status.into_iter().chain(version).chain(error)
}

/// A call or an attempt in flight.
struct Measurement {
    instruments: HttpInstruments,
    side: Side,
    labels: Vec<KeyValue>,
}

impl Open for Measurement {
    fn end(&mut self, end: &End) {
        if end.resends > 0 {
            self.instruments.resends.record(end.resends.into(), &self.labels);
        }
        self.labels.extend(ended(end));
        let instrument = match self.side {
            Side::Call => &self.instruments.calls,
            Side::Attempt => &self.instruments.requests,
        };
        instrument.record(end.after.as_secs_f64(), &self.labels);
    }
}

fn word(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Succeeded => "succeeded",
        StopReason::Permanent => "permanent",
        StopReason::AttemptsExhausted => "attempts_exhausted",
        StopReason::NotRepeatable => "not_repeatable",
        StopReason::EarlierHop => "earlier_hop",
        StopReason::BodyNotKept => "body_not_kept",
        StopReason::BodyNotOpened => "body_not_opened",
        StopReason::ScheduleEnded => "schedule_ended",
        StopReason::ServerSaidStop => "server_said_stop",
        StopReason::ServerDelayTooLong => "server_delay_too_long",
        StopReason::ElapsedExhausted => "elapsed_exhausted",
        StopReason::IntervalTooLong => "interval_too_long",
        StopReason::DeadlineExceeded => "deadline_exceeded",
        StopReason::BudgetExhausted => "budget_exhausted",
        StopReason::NotReady => "not_ready",
        StopReason::Forbidden => "forbidden",
        StopReason::Refused => "refused",
        StopReason::Nested => "nested",
        StopReason::NoTimer => "no_timer",
        _ => OTHER,
    }
}
