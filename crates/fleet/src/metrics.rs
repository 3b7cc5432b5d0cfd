//! Metrics of a fleet budget, as OpenTelemetry instruments.

use std::fmt;

use opentelemetry::metrics::{Counter, Histogram, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};

use crate::stats::FleetEvent;

/// A set of OpenTelemetry instruments for a fleet budget.
///
/// | instrument | unit | content |
/// |---|---|---|
/// | `reattempt.fleet.asked` (a counter) | `{retry}` | retries that the store was asked to grant |
/// | `reattempt.fleet.granted` (a counter) | `{retry}` | retries that the store granted in time |
/// | `reattempt.fleet.refused` (a counter) | `{retry}` | retries that the store refused in time |
/// | `reattempt.fleet.remembered` (a counter) | `{retry}` | retries refused because of an earlier refusal |
/// | `reattempt.fleet.alone` (a counter) | `{retry}` | retries that this process decided on without the store |
/// | `reattempt.fleet.withheld` (a counter) | `{retry}` | retries refused because the store fails |
/// | `reattempt.fleet.late` (a counter) | `{retry}` | requests that the store did not answer in time |
/// | `reattempt.fleet.failed` (a counter) | `{message}` | messages that ended with a store error |
/// | `reattempt.fleet.round_trip` (a histogram) | `s` | time from a request to its answer, if the answer is in time |
///
/// The instruments have the label **`destination`** only if [`with_destinations`](Self::with_destinations) is called.
///
/// The instruments belong to a meter named `reattempt`. To use the global provider, pass
/// `opentelemetry::global::meter_provider()`.
///
/// ```
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use reattempt_fleet::{FleetBudget, FleetMetrics, MemoryStore};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # let _guard = runtime.enter();
/// let provider = SdkMeterProvider::builder().build();
/// let metrics = FleetMetrics::new(&provider);
/// let budget = FleetBudget::new(MemoryStore::new()).on_event(metrics.on_event());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FleetMetrics {
    asked: Counter<u64>,
    granted: Counter<u64>,
    refused: Counter<u64>,
    remembered: Counter<u64>,
    alone: Counter<u64>,
    withheld: Counter<u64>,
    late: Counter<u64>,
    failed: Counter<u64>,
    round_trip: Histogram<f64>,
    destinations: bool,
}

impl FleetMetrics {
    /// Creates the instruments with `provider`.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        let retries = |name, description| counter(name, "{retry}", description);
        Self {
            asked: retries("reattempt.fleet.asked", "Retries for which the store was asked"),
            granted: retries("reattempt.fleet.granted", "Retries that the store granted in time"),
            refused: retries("reattempt.fleet.refused", "Retries that the store refused in time"),
            remembered: retries("reattempt.fleet.remembered", "Retries refused because of a refusal before them"),
            alone: retries("reattempt.fleet.alone", "Retries that this process decided about alone"),
            withheld: retries("reattempt.fleet.withheld", "Retries refused because the store fails"),
            late: retries("reattempt.fleet.late", "Questions without an answer within the patience"),
            failed: counter("reattempt.fleet.failed", "{message}", "Messages that ended with an error of the store"),
            round_trip: meter
                .f64_histogram("reattempt.fleet.round_trip")
                .with_unit("s")
                .with_description("Time from a question to its answer in time")
                // A store should answer within a few milliseconds, and the default patience is 50 ms.
                .with_boundaries(vec![0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
                .build(),
            destinations: false,
        }
    }

    /// Adds the destination to the labels. Default: off, because each destination creates new time series.
    pub fn with_destinations(self) -> Self {
        Self { destinations: true, ..self }
    }

    /// Returns a callback for [`FleetBudget::on_event`](crate::FleetBudget::on_event).
    pub fn on_event(&self) -> impl Fn(&str, &FleetEvent<'_>) + Send + Sync + use<> {
        let metrics = self.clone();
        move |destination, event| metrics.record(destination, event)
    }

    fn record(&self, destination: &str, event: &FleetEvent<'_>) {
        let label = self.destinations.then(|| KeyValue::new("destination", destination.to_owned()));
        let labels = label.as_slice();
        let counter = match event {
            FleetEvent::Asked => &self.asked,
            FleetEvent::Granted { .. } => &self.granted,
            FleetEvent::Refused { .. } => &self.refused,
            FleetEvent::Remembered => &self.remembered,
            FleetEvent::Alone => &self.alone,
            FleetEvent::Withheld => &self.withheld,
            FleetEvent::Late => &self.late,
            FleetEvent::LateOften { .. } => return,
            FleetEvent::Failed { .. } => &self.failed,
        };
        counter.add(1, labels);
        if let FleetEvent::Granted { round_trip } | FleetEvent::Refused { round_trip } = event {
            self.round_trip.record(round_trip.as_secs_f64(), labels);
        }
    }
}

impl fmt::Debug for FleetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetMetrics").field("destinations", &self.destinations).finish_non_exhaustive()
    }
}
