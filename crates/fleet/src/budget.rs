//! The public budget type.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Budget, Evidence, Failure, FailureKind, Permit, ServerHint, Warning};
use tokio::time::Instant;

use crate::ask::ask;
use crate::courier::Courier;
use crate::member::Member;
use crate::report;
use crate::rule::TOKEN;
use crate::stats::{FleetEvent, FleetStats, Observer};
use crate::store::BudgetStore;
use crate::task::TaskCourier;

/// The tokens that a success earns while this process's bucket is not full, in millionths.
const EARNED_BY_SUCCESS: u64 = TOKEN / 5;

/// The maximum patience.
const MOST_PATIENCE: Duration = Duration::from_secs(1);

/// A retry budget that many processes share through a store.
///
/// # Failure modes with and without it
///
/// *Without a shared budget*, each process of a large fleet starts an outage with its own full bucket. If ten thousand
/// clients each call once per 100 s, they can retry all their calls, and a short stall becomes a permanent overload.
///
/// *A store that is too far away* does not answer in time, so each process decides without it. Monitor
/// [`is_too_late`](FleetStats::is_too_late).
///
/// *A store that evicts keys* forgets that a bucket is empty. Use a dedicated database, or the eviction policy
/// `noeviction` or `volatile-ttl`.
///
/// # The rule
///
/// The process's own cautious [`RetryBudget`] decides first. If this budget grants the retry, the store is asked while
/// the delay before the retry runs. The failed outcome is held until the store answers, but for at most 50 ms. If the
/// store refuses, the call returns that outcome, with the stop reason `BudgetExhausted`.
///
/// The store has a bucket of 10 tokens per destination.
///
/// | event | tokens |
/// |---|---|
/// | a retry is granted | − 1 |
/// | a hedge is granted, or a retry after the server throttled the client (429) | − 2 |
/// | a granted retry of 1 token succeeds | + 3 |
/// | a granted retry is not sent | + its cost |
/// | a call succeeds while this process's bucket is not full | + 0.2 |
/// | a second passes | below 10 tokens: + 0.5; above 10 tokens: half of the excess is lost |
///
/// This bounds the fleet's granted retries: ≤ 10 + 0.5 · seconds + 3 · (successful retries) + 0.2 · (reported
/// successes). In an outage, the whole fleet sends ten retries, and then one every two seconds.
///
/// A destination whose name is longer than 255 bytes has a bucket of its own in each process, because its name is
/// replaced by a hash that differs by process.
///
/// A call that succeeds on the first attempt never asks the store. A process none of whose calls to the destination has
/// succeeded gets a token from a full bucket only. So processes that restart in a loop, because they are sick, leave
/// the last nine tokens to the healthy ones.
///
/// # Without the store
///
/// If the store fails or is late, a process whose retries succeed decides alone, with its own budget: one of its
/// retries to the destination has succeeded in the last 2 s. Another process refuses retries for 5 to 10 s from the
/// store's first failure, because a store that fails in an outage would otherwise release the retries of the whole
/// fleet at once. Then it decides alone, too. An answer in time ends this. A store that failed is asked again after a
/// second.
///
/// Without a tokio runtime, and for destinations beyond 1024, the process decides alone.
///
/// # Sharing
///
/// Clones share their state. A setter returns a *new* budget and does not change earlier clones. All processes with the
/// same store and [`prefix`](Self::prefix) share the buckets.
///
/// ```
/// use reattempt_fleet::{FleetBudget, MemoryStore};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
/// # let _guard = runtime.enter();
/// let budget = FleetBudget::new(MemoryStore::new()).prefix("shop");
/// assert_eq!(budget.stats().asked, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct FleetBudget {
    local: RetryBudget,
    settings: Settings,
    member: Arc<Member>,
}

#[derive(Clone)]
struct Settings {
    prefix: Box<str>,
    patience: Duration,
    observer: Option<Observer>,
    courier: Arc<dyn Courier>,
}

impl FleetBudget {
    /// Creates a budget that asks `store`. The constructor does not access the network. The store is first asked before
    /// the first retry.
    pub fn new(store: impl BudgetStore) -> Self {
        Self::carried_by(TaskCourier { store: Arc::new(store), start: Instant::now() })
    }

    /// Creates a budget with a custom message carrier, for simulations.
    #[doc(hidden)]
    pub fn carried_by(courier: impl Courier) -> Self {
        Self::build(Settings {
            prefix: "reattempt".into(),
            patience: Duration::from_millis(50),
            observer: None,
            courier: Arc::new(courier),
        })
    }

    /// Returns a new budget with this prefix for all keys. Default: `reattempt`.
    ///
    /// Services that must not share their retries need different prefixes. Operations passed to `retry()` have no
    /// destination, so give each operation a budget with its own prefix.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn prefix(mut self, prefix: impl Into<Box<str>>) -> Self {
        self.settings.prefix = prefix.into();
        Self::build(self.settings)
    }

    /// Returns a new budget that waits at most this long for the store's answer. Default: 50 ms. Maximum: 1 s.
    ///
    /// The wait overlaps with the retry's delay, so an answer within the delay adds no time. With a patience of 20 ms,
    /// a store with a latency of 10 ms would often be late.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.settings.patience = patience.min(MOST_PATIENCE);
        Self::build(self.settings)
    }

    /// Returns a new budget that calls this function for each event, with its destination.
    ///
    /// The function runs on the thread where the event occurs, so it must not block. If it panics in a task that asks
    /// the store, the task ends, and the retry is already decided. Otherwise its panic reaches the caller. It is not
    /// called while a thread unwinds, because a second panic would abort the process.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn on_event(mut self, on: impl Fn(&str, &FleetEvent<'_>) + Send + Sync + 'static) -> Self {
        self.settings.observer = Some(Arc::new(on));
        Self::build(self.settings)
    }

    /// Returns the event counts since the budget was created.
    pub fn stats(&self) -> FleetStats {
        self.member.tally.stats()
    }

    /// Returns this process's own budget, which decides before the store is asked.
    pub fn local(&self) -> &RetryBudget {
        &self.local
    }

    fn build(settings: Settings) -> Self {
        let (observer, courier) = (settings.observer.clone(), Arc::clone(&settings.courier));
        let member = Member::new(settings.prefix.clone(), settings.patience, observer, courier);
        // An overdraft is a claim on the capacity that the whole fleet shares (F-12).
        let local = RetryBudget::cautious().overdraft(0);
        Self { local, settings, member: Arc::new(member) }
    }

    /// Joins this process's permit with the one that waits for the store.
    fn ask(&self, local: Permit, destination: &str, cost: u64) -> Option<Permit> {
        ask(&self.member, destination, cost).map(|permit| local.and(permit))
    }
}

impl Budget for FleetBudget {
    fn acquire(&self, destination: &str, failure: &Failure, now: Duration) -> Option<Permit> {
        let local = self.local.acquire(destination, failure, now)?;
        self.ask(local, destination, 2 * TOKEN)
    }

    fn acquire_after_failure(&self, destination: &str, evidence: &Evidence, now: Duration) -> Option<Permit> {
        let local = self.local.acquire_after_failure(destination, evidence, now)?;
        let is_throttled = evidence.failure.kind() == FailureKind::Throttled;
        self.ask(local, destination, if is_throttled { 2 * TOKEN } else { TOKEN })
    }

    fn on_failure(&self, destination: &str, evidence: &Evidence, now: Duration) {
        self.local.on_failure(destination, evidence, now);
    }

    fn on_unprocessed(&self, destination: &str, evidence: &Evidence, now: Duration) -> bool {
        self.local.on_unprocessed(destination, evidence, now)
    }

    #[inline]
    fn on_success(&self, destination: &str, retries: u32) {
        if self.is_full() {
            return;
        }
        if self.member.is_young() {
            self.member.on_first_successes(destination);
        }
        let reports = !self.local.is_full_for(destination);
        self.local.on_success(destination, retries);
        if reports {
            report::on_success(&self.member, destination, EARNED_BY_SUCCESS);
        }
    }

    fn on_permanent_failure(&self, destination: &str, _: ServerHint, retries: u32) {
        self.on_success(destination, retries);
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.local.is_full() && !self.member.is_young()
    }

    fn validate(&self) -> Vec<Warning> {
        self.local.validate()
    }
}

impl fmt::Debug for FleetBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FleetBudget")
            .field("prefix", &self.settings.prefix)
            .field("patience", &self.settings.patience)
            .field("stats", &self.stats())
            .field("local", &self.local)
            .finish_non_exhaustive()
    }
}

/// Shows whether the store fails, the counts since the start, and this process's own budget.
impl Inspect for FleetBudget {
    fn inspect(&self, now: Duration) -> Part {
        let stats = self.stats();
        let part = Part::new("fleet_budget", "").field("prefix", &*self.settings.prefix);
        let part = self.member.inspect(part.field("patience", self.settings.patience));
        part.field("asked", stats.asked)
            .field("granted", stats.granted)
            .field("refused", stats.refused)
            .field("remembered", stats.remembered)
            .field("alone", stats.alone)
            .field("withheld", stats.withheld)
            .field("late", stats.late)
            .field("failed", stats.failed)
            .field("round_trip", stats.round_trip)
            .parts([self.local.inspect(now).named("local")])
    }
}
