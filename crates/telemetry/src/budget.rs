//! Metrics of retry budgets, as OpenTelemetry instruments.

use std::fmt;
use std::sync::Arc;

use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry::{InstrumentationScope, KeyValue};
use reattempt_control::RetryBudget;

/// A set of OpenTelemetry instruments for retry budgets. Budgets are read when the metrics reader collects.
///
/// | instrument | unit | labels |
/// |---|---|---|
/// | `reattempt.budget.refusals` (a counter) | `{retry}` | name |
/// | `reattempt.budget.lowest` (a gauge) | `{token}` | name |
/// | `reattempt.budget.destinations` (a gauge) | `{destination}` | name |
///
/// `lowest` is the lowest balance of any destination. It is not reported until there is a destination. The label `name`
/// is the name given to [`record`](Self::record).
///
/// ```
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use reattempt::telemetry::BudgetMetrics;
/// use reattempt::{RetryBudget, RetryPolicy};
///
/// let provider = SdkMeterProvider::builder().build();
/// let budget = RetryBudget::percent(10);
/// BudgetMetrics::new(&provider).record("stock", &budget);
/// let policy = RetryPolicy::http().budget(budget);
/// ```
#[derive(Clone)]
pub struct BudgetMetrics {
    meter: Meter,
}

impl BudgetMetrics {
    /// Creates the instruments with `provider`, in a meter named `reattempt`.
    pub fn new(provider: &dyn MeterProvider) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        Self { meter: provider.meter_with_scope(scope) }
    }

    /// Starts recording a budget under this name. The provider keeps a clone that shares the budget's state.
    pub fn record(&self, name: impl Into<Arc<str>>, budget: &RetryBudget) {
        let labels = [KeyValue::new("name", name.into())];
        let (of, name) = (budget.clone(), labels.clone());
        let counter = self.meter.u64_observable_counter("reattempt.budget.refusals").with_unit("{retry}");
        counter
            .with_description("Retries that the budget refused")
            .with_callback(move |observer| observer.observe(of.refusals(), &name))
            .build();
        let (of, name) = (budget.clone(), labels.clone());
        let gauge = self.meter.f64_observable_gauge("reattempt.budget.lowest").with_unit("{token}");
        gauge
            .with_description("The lowest balance of all destinations")
            .with_callback(move |observer| {
                let lowest = of.destinations().into_iter().map(|(_, balance)| balance).reduce(f64::min);
                lowest.into_iter().for_each(|lowest| observer.observe(lowest, &name));
            })
            .build();
        let of = budget.clone();
        let gauge = self.meter.u64_observable_gauge("reattempt.budget.destinations").with_unit("{destination}");
        gauge
            .with_description("Destinations with a bucket")
            .with_callback(move |observer| observer.observe(of.destinations().len() as u64, &labels))
            .build();
    }
}

impl fmt::Debug for BudgetMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BudgetMetrics").finish_non_exhaustive()
    }
}
