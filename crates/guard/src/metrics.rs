//! Guard metrics, as OpenTelemetry instruments.
//!
//! [`GuardMetrics`] counts attempts that wait or are refused, records state changes of circuit breakers, and reads
//! places, rates and probabilities. Each of these must be enabled separately.

use std::fmt;
use std::sync::Arc;

use opentelemetry::metrics::{Counter, Meter, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use reattempt_core::guard::{Reason, Refused};
use reattempt_engine::observe::{Event, Observer};

use super::Limit;
use super::handle::{StateChange, ThrottleCounts, Usage};

/// A set of OpenTelemetry instruments for guards.
///
/// | instrument | unit | labels | enabled by |
/// |---|---|---|---|
/// | `reattempt.guard.refused` (a counter) | `{attempt}` | guard, reason | [`GuardLayer::observe_with`](super::GuardLayer::observe_with) |
/// | `reattempt.guard.waited` (a counter) | `{attempt}` | | the same |
/// | `reattempt.guard.state_changes` (a counter) | `{change}` | name, from, to | [`state_changes`](Self::state_changes) |
/// | `reattempt.guard.limit` (a gauge) | `{call}` | name | [`places`](Self::places) |
/// | `reattempt.guard.in_flight` (a gauge) | `{call}` | name | the same |
/// | `reattempt.guard.waiting` (a gauge) | `{call}` | name | the same |
/// | `reattempt.guard.past_head` (a gauge) | `{call}` | name | the same |
/// | `reattempt.guard.oldest_past_head` (a gauge) | `s` | name | the same, while `past_head` is not 0 |
/// | `reattempt.guard.tokens` (a gauge) | `{call}` | name | [`tokens`](Self::tokens), for a rate limit |
/// | `reattempt.guard.rate` (a gauge) | `{call}/s` | name | [`rate`](Self::rate), for a send rate, a rate limit or a pace, while the rate is finite |
/// | `reattempt.guard.refusal_probability` (a gauge) | `1` | name | [`throttling`](Self::throttling), for a throttle |
///
/// `past_head` counts the calls whose response head has arrived but whose body has not ended. `oldest_past_head` is the
/// time since the oldest of these heads arrived.
///
/// The labels are:
///
/// - **`guard`**: `circuit_breaker`, `rate_limit`, `bulkhead`, `adaptive_limit`, `throttle`, `send_rate`, `pause`,
///   `pace` or `custom`.
/// - **`reason`**: `open`, `too_many_requests`, `isolated`, `full`, `rate_exceeded`, `wait_too_long`, `too_large` or
///   `shed`.
/// - **`name`**: the name of the breaker, or the name passed for a gauge.
/// - **`from`**, **`to`**: `closed`, `half-open`, `open` or `forced open`.
/// - **`destination`**: on the counters, only if [`with_destinations`](Self::with_destinations) is called.
///
/// An attempt that is refused after a wait counts as both waited and refused. Gauges are read when the metrics reader
/// collects.
///
/// The instruments belong to a meter named `reattempt`. To use the global provider, pass
/// `opentelemetry::global::meter_provider()`.
///
/// ```
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use reattempt::guard::metrics::GuardMetrics;
/// use reattempt::guard::{self, Bulkhead, CircuitBreaker, GuardLayer};
///
/// let provider = SdkMeterProvider::builder().build();
/// let metrics = GuardMetrics::new(&provider);
///
/// let breaker = CircuitBreaker::rate().on_state_change(metrics.state_changes());
/// let bulkhead = Bulkhead::new(64);
/// let read = bulkhead.clone();
/// metrics.places("stock", move || read.usage_at("stock.example", guard::handle::now()));
/// let layer = GuardLayer::http((breaker, bulkhead)).observe_with(metrics);
/// ```
#[derive(Clone)]
pub struct GuardMetrics {
    meter: Meter,
    refused: Counter<u64>,
    waited: Counter<u64>,
    state_changes: Counter<u64>,
    destinations: bool,
}

/// A function that returns one number of a [`Usage`].
type Number = fn(&Usage) -> u64;

impl GuardMetrics {
    /// Creates the counters with `provider`.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        let meter = provider.meter_with_scope(scope);
        let counter = |name: &'static str, unit: &'static str, description: &'static str| {
            meter.u64_counter(name).with_unit(unit).with_description(description).build()
        };
        Self {
            refused: counter(
                "reattempt.guard.refused",
                "{attempt}",
                "Attempts that a guard refused and the layer did not send",
            ),
            waited: counter("reattempt.guard.waited", "{attempt}", "Attempts that waited for a guard"),
            state_changes: counter("reattempt.guard.state_changes", "{change}", "State changes of circuit breakers"),
            meter,
            destinations: false,
        }
    }

    /// Adds the destination to the counters' labels. Default: off, because each destination creates new time series.
    pub fn with_destinations(self) -> Self {
        Self { destinations: true, ..self }
    }

    /// Returns a callback for [`CircuitBreaker::on_state_change`](super::CircuitBreaker::on_state_change).
    pub fn state_changes(&self) -> impl Fn(&StateChange) + Send + Sync + use<> {
        let metrics = self.clone();
        move |change| {
            let labels = vec![
                KeyValue::new("name", Arc::clone(&change.name)),
                KeyValue::new("from", change.from.to_string()),
                KeyValue::new("to", change.to.to_string()),
            ];
            metrics.count(&metrics.state_changes, &change.destination, labels);
        }
    }

    /// Creates the gauges for a limit on calls in flight, with the label `name`. `usage` returns the numbers of calls
    /// that hold a place or wait for one, from [`Bulkhead::usage`](super::handle::UsageExt::usage) or
    /// [`AdaptiveLimit::usage`](super::handle::UsageExt::usage).
    ///
    /// The provider keeps `usage`, and any guard that it captures, until the provider is dropped. Give each limit its
    /// own name.
    pub fn places(&self, name: impl Into<Arc<str>>, usage: impl Fn() -> Usage + Send + Sync + 'static) {
        let (name, usage) = (name.into(), Arc::new(usage));
        let gauges: [(&'static str, &'static str, Number); 4] = [
            ("reattempt.guard.limit", "The most calls in flight", |usage| usage.limit.into()),
            ("reattempt.guard.in_flight", "Calls that hold a place", |usage| usage.in_flight.into()),
            ("reattempt.guard.waiting", "Calls that wait for a place", |usage| usage.waiting as u64),
            ("reattempt.guard.past_head", "Calls whose body is not over", |usage| usage.past_head as u64),
        ];
        for (gauge, description, read) in gauges {
            let (labels, usage) = ([KeyValue::new("name", Arc::clone(&name))], Arc::clone(&usage));
            let builder = self.meter.u64_observable_gauge(gauge).with_unit("{call}");
            builder
                .with_description(description)
                .with_callback(move |observer| observer.observe(read(&usage()), &labels))
                .build();
        }
        let (gauge, unit) = ("reattempt.guard.oldest_past_head", "s");
        self.gauge(gauge, unit, "Age of the oldest response whose body is not over", name, move || {
            usage().oldest_past_head.map(|age| age.as_secs_f64())
        });
    }

    /// Creates the gauge for a rate limit's tokens, with the label `name`. `tokens` returns the number of tokens, from
    /// [`RateLimit::tokens`](super::handle::RateLimitExt::tokens). A negative value means that calls wait for tokens.
    pub fn tokens(&self, name: impl Into<Arc<str>>, tokens: impl Fn() -> f64 + Send + Sync + 'static) {
        let (gauge, unit) = ("reattempt.guard.tokens", "{call}");
        let read = move || Some(tokens());
        self.gauge(gauge, unit, "Calls that may be sent at once", name.into(), read);
    }

    /// Creates the gauge for a rate, with the label `name`. `rate` returns the rate, from
    /// [`SendRate::limit`](super::SendRate::limit), [`RateLimit::limit`](super::RateLimit::limit) or
    /// [`Pace::limit`](super::Pace::limit).
    pub fn rate(&self, name: impl Into<Arc<str>>, rate: impl Fn() -> Limit + Send + Sync + 'static) {
        let (gauge, unit) = ("reattempt.guard.rate", "{call}/s");
        // The SDK does not record infinite values.
        let read = move || Some(rate().tokens_per_second());
        self.gauge(gauge, unit, "The rate at which calls may be sent", name.into(), read);
    }

    /// Creates the gauge for a throttle, with the label `name`. `counts` returns the throttle's counts, from
    /// [`Throttle::counts`](super::handle::ThrottleExt::counts).
    pub fn throttling(&self, name: impl Into<Arc<str>>, counts: impl Fn() -> ThrottleCounts + Send + Sync + 'static) {
        let (gauge, unit) = ("reattempt.guard.refusal_probability", "1");
        let read = move || Some(counts().probability);
        self.gauge(gauge, unit, "The share of calls that are refused", name.into(), read);
    }

    fn gauge(
        &self,
        gauge: &'static str,
        unit: &'static str,
        description: &'static str,
        name: Arc<str>,
        read: impl Fn() -> Option<f64> + Send + Sync + 'static,
    ) {
        let labels = [KeyValue::new("name", name)];
        let builder = self.meter.f64_observable_gauge(gauge).with_unit(unit);
        builder
            .with_description(description)
            .with_callback(move |observer| {
                read().into_iter().for_each(|value| observer.observe(value, &labels));
            })
            .build();
    }

    fn count(&self, counter: &Counter<u64>, destination: &str, mut labels: Vec<KeyValue>) {
        if self.destinations {
            labels.push(KeyValue::new("destination", destination.to_owned()));
        }
        counter.add(1, &labels);
    }
}

impl Observer for GuardMetrics {
    /// Counts attempts that wait or are refused. Other events are not recorded.
    fn on_event(&self, destination: &str, event: &Event<'_>) {
        match event {
            Event::Waiting => self.count(&self.waited, destination, Vec::new()),
            Event::Refused { refused } => {
                self.count(&self.refused, destination, labels_of(refused));
            }
            _ => {}
        }
    }
}

fn labels_of(refused: &Refused) -> Vec<KeyValue> {
    let guard = refused.guard().name().replace(' ', "_");
    let reason = match refused.reason() {
        Reason::Open => "open",
        Reason::TooManyRequests => "too_many_requests",
        Reason::Isolated => "isolated",
        Reason::Full => "full",
        Reason::RateExceeded => "rate_exceeded",
        Reason::WaitTooLong => "wait_too_long",
        Reason::TooLarge => "too_large",
        Reason::Shed => "shed",
        _ => "other",
    };
    vec![KeyValue::new("guard", guard), KeyValue::new("reason", reason)]
}

impl fmt::Debug for GuardMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardMetrics").field("destinations", &self.destinations).finish_non_exhaustive()
    }
}
