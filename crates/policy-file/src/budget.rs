//! The budget of a policy from a file, which refuses all retries while the kill switch is on.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use reattempt::budget::{Budget, Evidence, Permit};
use reattempt::classify::ServerHint;
use reattempt::error::Warning;
use reattempt::policies::TableBudget;
use reattempt::schedule::Failure;

/// The switch that all budgets of a file share.
#[derive(Debug, Clone, Default)]
pub(crate) struct KillSwitch(Arc<AtomicBool>);

impl KillSwitch {
    pub(crate) fn set(&self, never_retry: bool) {
        self.0.store(never_retry, Ordering::Release);
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A budget that grants nothing while the switch is on. Waiting calls therefore get no further retry, whatever policy
/// they started with.
pub(crate) struct Switched {
    pub(crate) budget: TableBudget,
    pub(crate) switch: KillSwitch,
}

impl Budget for Switched {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        if self.switch.is_on() { None } else { self.budget.acquire(destination, failure, now) }
    }

    fn acquire_after_failure(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        if self.switch.is_on() {
            self.budget.on_failure(destination, evidence, now);
            return None;
        }
        self.budget.acquire_after_failure(destination, evidence, now)
    }

    fn on_failure(&self, destination: &str, evidence: &Evidence, now: Duration) {
        self.budget.on_failure(destination, evidence, now);
    }

    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        !self.switch.is_on() && self.budget.on_unprocessed(destination, evidence, now)
    }

    fn on_success(&self, destination: &str, retries: u32) {
        self.budget.on_success(destination, retries);
    }

    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        self.budget.on_permanent_failure(destination, hint, retries);
    }

    fn is_full(&self) -> bool {
        self.budget.is_full()
    }

    fn is_noop(&self) -> bool {
        // Never full, because the switch may be turned on at any time.
        false
    }

    fn is_keyed(&self) -> bool {
        self.budget.is_keyed()
    }

    fn most_retries(&self, within: Duration) -> Option<u32> {
        self.budget.most_retries(within)
    }

    fn validate(&self) -> Vec<Warning> {
        self.budget.validate()
    }
}

impl fmt::Debug for Switched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Switched").field("switch", &self.switch).finish_non_exhaustive()
    }
}
