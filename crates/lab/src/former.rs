//! The former cautious rule, for comparison with the present one: a budget that counts each failed call.
//!
//! Each failure adds doubt. Only a lost connection whose calls fail within the same 64 ms adds it once, and ten tokens
//! pay for their retries. An attempt that was not processed costs a token like any other.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt::budget::Budget;
use reattempt::schedule::{Failure, FailureKind};
use reattempt_core::{Evidence, Permit, PermitIssuer};

/// The tokens of a full budget, and those that a success adds, in thousandths.
const FULL: u32 = 10_000;
const CREDIT: u32 = 200;
const TOKEN: u32 = 1000;
const MOST_DOUBT: u32 = 128;
/// The doubt above which no retry is granted.
const ALLOWED_DOUBT: u32 = 3;
const REMOVED_BY_SUCCESS: u32 = 2;
/// The cost of a retry that is returned if it succeeds, and of one after a 429.
const RETURNED: u32 = 1;
const NOT_RETURNED: u32 = 2;
/// The time without a failure after which the budget is full again.
const QUIET: u64 = 600_000 >> TICK_BITS;
/// A tick is 64 ms.
const TICK_BITS: u32 = 6;

/// The former budget of one client, for a single destination.
#[derive(Debug, Default)]
pub(crate) struct FormerBudget(Arc<Bucket>);

#[derive(Debug, Default)]
struct Bucket(Mutex<State>);

#[derive(Debug)]
struct State {
    tokens: u32,
    doubt: u32,
    /// The tick of the last failure.
    failed: u64,
}

impl Default for State {
    fn default() -> Self {
        Self { tokens: FULL, doubt: 0, failed: 0 }
    }
}

impl Bucket {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fail(&mut self, kind: FailureKind, now: Duration) {
        let tick = u64::try_from(now.as_millis() >> TICK_BITS).unwrap_or(u64::MAX);
        if tick.saturating_sub(self.failed) >= QUIET {
            *self = Self::default();
        }
        let is_known = kind == FailureKind::Network && self.doubt > 0 && self.failed == tick;
        if !is_known {
            self.doubt = (self.doubt + 1).min(MOST_DOUBT);
        }
        self.failed = tick;
    }

    fn take(&mut self, cost: u32) -> bool {
        let taken = self.doubt <= ALLOWED_DOUBT && self.tokens >= cost * TOKEN;
        self.tokens -= if taken { cost * TOKEN } else { 0 };
        taken
    }

    fn add(&mut self, thousandths: u32) {
        self.tokens = (self.tokens + thousandths).min(FULL);
    }
}

impl Budget for FormerBudget {
    /// Refuses every hedge, because no simulation sends one under this rule.
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        None
    }

    fn acquire_after_failure(&self, _: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        let kind = evidence.failure.kind();
        let cost = if kind == FailureKind::Throttled { NOT_RETURNED } else { RETURNED };
        let mut state = self.0.lock();
        state.fail(kind, now);
        state.take(cost).then(|| Permit::new(Arc::clone(&self.0), cost))
    }

    fn on_failure(&self, _: &str, evidence: &Evidence, now: Duration) {
        self.0.lock().fail(evidence.failure.kind(), now);
    }

    /// An attempt that was not processed is decided like any other failure.
    fn on_unprocessed(&self, _: &str, _: &Evidence, _: Duration) -> bool {
        false
    }

    fn on_success(&self, _: &str, _: u32) {
        let mut state = self.0.lock();
        state.doubt = state.doubt.saturating_sub(REMOVED_BY_SUCCESS);
        state.add(CREDIT);
    }
}

impl PermitIssuer for Bucket {
    fn give_back(&self, cost: u32) {
        self.lock().add(cost * TOKEN);
    }

    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        if succeeded && cost == RETURNED {
            self.give_back(cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use reattempt::Verdict;

    use super::*;

    fn after(kind: FailureKind) -> Evidence {
        Verdict::Transient(Failure::new(kind)).into()
    }

    /// A failure stands alone unless a connection was lost in the same 64 ms: three retries in an outage, and ten after
    /// a lost connection.
    #[test]
    fn former_rule_counts_calls_in_64_ms() {
        let sent = |kind, step: u64| {
            let budget = FormerBudget::default();
            let at = |call| Duration::from_millis(6400 + call * step);
            let granted = (0..100).filter(|call| budget.acquire_after_failure("", &after(kind), at(*call)).is_some());
            // The permits are dropped unspent, so they are returned.
            granted.count()
        };
        assert_eq!([sent(FailureKind::Server, 0), sent(FailureKind::Network, 64)], [3, 3]);
        assert_eq!(sent(FailureKind::Network, 0), 100);
        let budget = FormerBudget::default();
        let retry =
            || budget.acquire_after_failure("", &after(FailureKind::Network), Duration::ZERO).map(Permit::spend);
        let retries: Vec<_> = (0..100).map_while(|_| retry()).collect();
        assert_eq!(retries.len(), 10);
        retries.into_iter().for_each(reattempt_core::PaidRetry::succeed);
        assert!(retry().is_some(), "a success returns the token");
    }

    /// Doubt heals with successes, and after ten minutes.
    #[test]
    fn former_rule_heals() {
        let budget = FormerBudget::default();
        let fail = |second| budget.acquire_after_failure("", &after(FailureKind::Server), Duration::from_secs(second));
        (0..200).for_each(|_| drop(fail(1)));
        (0..62).for_each(|_| budget.on_success("", 0));
        assert!(fail(1).is_none());
        (0..2).for_each(|_| budget.on_success("", 0));
        assert!(fail(1).is_some());
        (0..200).for_each(|_| drop(fail(2)));
        assert!(fail(601).is_none() && fail(1300).is_some());
    }
}
