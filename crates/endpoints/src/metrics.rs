//! Metrics of sets of endpoints, as OpenTelemetry instruments.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Weak};

use opentelemetry::metrics::{AsyncInstrument, Counter, Meter, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use reattempt_control::{EjectReason, EndpointEvent, EndpointView, bounded_name};
use reattempt_guard::handle::now;

use super::guard::EndpointGuard;
use super::handle::EndpointsHandle;

/// A set of OpenTelemetry instruments for endpoints.
///
/// | instrument | unit | labels |
/// |---|---|---|
/// | `reattempt.endpoints.in_service` (a gauge) | `{endpoint}` | name |
/// | `reattempt.endpoints.out` (a gauge) | `{endpoint}` | name |
/// | `reattempt.endpoints.in_flight` (a gauge) | `{attempt}` | name, endpoint |
/// | `reattempt.endpoints.picks` (a counter) | `{attempt}` | name, endpoint |
/// | `reattempt.endpoints.ejections` (a counter) | `{ejection}` | name, reason, endpoint |
/// | `reattempt.endpoints.resolved` (a counter) | `{answer}` | name |
/// | `reattempt.endpoints.resolve_failures` (a counter) | `{failure}` | name |
///
/// The labels are:
///
/// - **`name`**: the name passed to [`record`](Self::record).
/// - **`reason`**: `in_a_row`, `failure_rate`, `no_connection` or `asked`.
/// - **`endpoint`**: the name of the endpoint, only if [`with_endpoints`](Self::with_endpoints) is called.
///
/// `resolved` counts the discovery results that differ from the previous one. Gauges and picks are read when the
/// metrics reader collects.
///
/// ```
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use reattempt::endpoints::EndpointsLayer;
/// use reattempt::endpoints::metrics::EndpointMetrics;
///
/// # fn main() -> Result<(), reattempt::endpoints::EndpointsError> {
/// let provider = SdkMeterProvider::builder().build();
/// let layer = EndpointsLayer::http(["https://eu.example", "https://us.example"])?;
/// EndpointMetrics::new(&provider).record("stock", &layer.endpoints());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct EndpointMetrics {
    meter: Meter,
    ejections: Counter<u64>,
    resolved: Counter<u64>,
    resolve_failures: Counter<u64>,
    endpoints: bool,
}

impl EndpointMetrics {
    /// Creates the counters with `provider`.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            ejections: counter("reattempt.endpoints.ejections", "{ejection}", "Endpoints put out of service"),
            resolved: counter("reattempt.endpoints.resolved", "{answer}", "Discoveries of other endpoints than before"),
            resolve_failures: counter("reattempt.endpoints.resolve_failures", "{failure}", "Failed discoveries"),
            meter,
            endpoints: false,
        }
    }

    /// Adds the endpoint to the labels. Default: off, because every endpoint ever discovered creates new time series.
    pub fn with_endpoints(self) -> Self {
        Self { endpoints: true, ..self }
    }

    /// Records a set of endpoints under `name`, which should be unique. The instruments do not keep the set alive after
    /// its last client is dropped.
    pub fn record<T: Send + Sync + 'static>(&self, name: impl Into<Arc<str>>, endpoints: &EndpointsHandle<T>) {
        let (name, guard) = (name.into(), endpoints.downgrade());
        let set = KeyValue::new("name", Arc::clone(&name));
        self.gauge("reattempt.endpoints.in_service", "Endpoints that are picked", &set, &guard, |view| {
            view.out.is_none()
        });
        self.gauge("reattempt.endpoints.out", "Endpoints that are out for a while", &set, &guard, |view| {
            view.out.is_some()
        });
        let (labels, weak) = (self.labels_of(&set), Weak::clone(&guard));
        let gauge = self.meter.u64_observable_gauge("reattempt.endpoints.in_flight").with_unit("{attempt}");
        gauge
            .with_description("Attempts whose response is not over")
            .with_callback(move |observer| {
                labels.observe(observer, &weak, |view| view.in_flight as u64, |_| 0);
            })
            .build();
        let labels = self.labels_of(&set);
        let counter = self.meter.u64_observable_counter("reattempt.endpoints.picks").with_unit("{attempt}");
        counter
            .with_description("Attempts that were sent to an endpoint")
            .with_callback(move |observer| {
                labels.observe(observer, &guard, |view| view.picks, |guard| guard.set.picks_of_gone());
            })
            .build();
        let metrics = self.clone();
        endpoints.observe(move |event| metrics.count(&name, event));
    }

    /// Creates a gauge that counts the endpoints for which `counts` returns `true`.
    fn gauge<T: Send + Sync + 'static>(
        &self,
        gauge: &'static str,
        description: &'static str,
        set: &KeyValue,
        guard: &Weak<EndpointGuard<T>>,
        counts: fn(&EndpointView) -> bool,
    ) {
        let (labels, guard) = ([set.clone()], Weak::clone(guard));
        let builder = self.meter.u64_observable_gauge(gauge).with_unit("{endpoint}");
        builder
            .with_description(description)
            .with_callback(move |observer| {
                if let Some(guard) = guard.upgrade() {
                    let counted = guard.set.view(now()).iter().filter(|view| counts(view)).count();
                    observer.observe(counted as u64, &labels);
                }
            })
            .build();
    }

    fn labels_of(&self, set: &KeyValue) -> Labels {
        Labels { set: set.clone(), endpoints: self.endpoints }
    }

    fn count(&self, name: &Arc<str>, event: &EndpointEvent) {
        let mut labels = vec![KeyValue::new("name", Arc::clone(name))];
        let counter = match event {
            EndpointEvent::Ejected { name, reason, .. } => {
                labels.push(KeyValue::new("reason", word(*reason)));
                if self.endpoints {
                    labels.push(endpoint(name));
                }
                &self.ejections
            }
            EndpointEvent::Resolved { .. } => &self.resolved,
            EndpointEvent::ResolveFailed { .. } => &self.resolve_failures,
            _ => return,
        };
        counter.add(1, &labels);
    }
}

fn word(reason: EjectReason) -> &'static str {
    match reason {
        EjectReason::InARow => "in_a_row",
        EjectReason::FailureRate => "failure_rate",
        EjectReason::NoConnection => "no_connection",
        EjectReason::Asked => "asked",
        _ => "other",
    }
}

/// The labels of a metric that is recorded for each endpoint.
struct Labels {
    set: KeyValue,
    endpoints: bool,
}

impl Labels {
    /// Observes each endpoint's value, or the sum of all, which includes removed endpoints.
    fn observe<T: Send + Sync + 'static>(
        &self,
        observer: &dyn AsyncInstrument<u64>,
        guard: &Weak<EndpointGuard<T>>,
        number: fn(&EndpointView) -> u64,
        of_gone: fn(&EndpointGuard<T>) -> u64,
    ) {
        let Some(guard) = guard.upgrade() else { return };
        let views = guard.set.view(now());
        if !self.endpoints {
            let sum = views.iter().map(number).sum::<u64>() + of_gone(&guard);
            return observer.observe(sum, std::slice::from_ref(&self.set));
        }
        for view in &views {
            observer.observe(number(view), &[self.set.clone(), endpoint(&view.name)]);
        }
    }
}

/// Returns the label of an endpoint. A name of more than 255 bytes is replaced by its hash.
fn endpoint(name: &Arc<str>) -> KeyValue {
    match bounded_name(name) {
        Cow::Borrowed(_) => KeyValue::new("endpoint", Arc::clone(name)),
        Cow::Owned(hash) => KeyValue::new("endpoint", hash),
    }
}

impl fmt::Debug for EndpointMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointMetrics").field("endpoints", &self.endpoints).finish_non_exhaustive()
    }
}
