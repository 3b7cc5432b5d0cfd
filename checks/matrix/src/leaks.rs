//! Everything that a stack could keep after its calls: permits of the budget, places in guards, attempts of endpoints.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reattempt::budget::{Budget, Permit, PermitIssuer};
use reattempt::endpoints::EndpointsHandle;
use reattempt::guard::handle::{CircuitBreakerExt, now};
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt::schedule::Failure;

/// The holders of permits and places in one stack.
#[derive(Default)]
pub(crate) struct Leaks {
    permits: Arc<Permits>,
    guards: Option<(CircuitBreaker, Bulkhead)>,
    in_flight: Option<Box<dyn Fn() -> usize>>,
}

/// The number of permits in use.
#[derive(Debug, Default)]
struct Permits(AtomicUsize);

impl PermitIssuer for Permits {
    fn give_back(&self, _: u32) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    fn on_retry_end(&self, _: u32, _: bool) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A budget that grants everything and counts its permits.
#[derive(Debug, Clone)]
pub(crate) struct PermitCount(Arc<Permits>);

impl Budget for PermitCount {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.0.0.fetch_add(1, Ordering::SeqCst);
        Some(Permit::new(Arc::clone(&self.0), 1))
    }
}

impl Leaks {
    pub(crate) fn budget(&self) -> PermitCount {
        PermitCount(Arc::clone(&self.permits))
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
        match self.permits.0.load(Ordering::SeqCst) {
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
