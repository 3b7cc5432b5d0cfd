//! Everything that a stack could keep after its calls: permits of the budget, places in guards, attempts of endpoints.

use reattempt::endpoints::EndpointsHandle;
use reattempt::guard::handle::{CircuitBreakerExt, now};
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt_testing::PermitCount;

/// The holders of permits and places in one stack.
#[derive(Default)]
pub(crate) struct Leaks {
    permits: PermitCount,
    guards: Option<(CircuitBreaker, Bulkhead)>,
    in_flight: Option<Box<dyn Fn() -> usize>>,
}

impl Leaks {
    pub(crate) fn budget(&self) -> PermitCount {
        self.permits.clone()
    }

    pub(crate) fn watch(&mut self, breaker: &CircuitBreaker, bulkhead: &Bulkhead) {
        self.guards = Some((breaker.clone(), bulkhead.clone()));
    }

    pub(crate) fn watch_endpoints<T: Send + Sync + 'static>(&mut self, endpoints: EndpointsHandle<T>) {
        self.in_flight = Some(Box::new(move || endpoints.view().iter().map(|view| view.in_flight).sum()));
    }

    /// Returns what is kept although no call is in flight. `destination` is the key of the guards.
    pub(crate) fn found(&self, destination: &str) -> Vec<String> {
        let mut found = Vec::new();
        match self.permits.in_use() {
            0 => {}
            out => found.push(format!("{out} permits of the budget are out")),
        }
        if let Some((breaker, bulkhead)) = &self.guards {
            let counts = breaker.counts(destination);
            let ended = counts.total_successes + counts.total_failures + counts.total_exclusions;
            if counts.requests != ended {
                found.push(format!("the breaker has {counts:?}"));
            }
            let usage = bulkhead.usage_at(destination, now());
            if (usage.in_flight, usage.waiting) != (0, 0) {
                found.push(format!("the bulkhead has {usage:?}"));
            }
        }
        match self.in_flight.as_ref().map_or(0, |in_flight| in_flight()) {
            0 => {}
            attempts => found.push(format!("{attempts} attempts of endpoints are in flight")),
        }
        found
    }
}
