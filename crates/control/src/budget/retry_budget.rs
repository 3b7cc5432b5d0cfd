//! The public budget type, with its constructors and settings.

// structure(file-length): one public type, most of it docs.

use std::sync::Arc;

#[cfg(doc)]
use reattempt_core::Evidence;

use super::bucket::TOKEN;
use super::destinations::Destinations;
use super::not_full::NotFull;
use super::settings::{Costs, Kind, RATIO, Settings};
use crate::destination_table::{DEFAULT_DESTINATIONS, clamped_destinations};
use crate::millionths::{millionths, units};
use crate::sync::{Apart, AtomicU64, OnceLock, Ordering};

/// A retry budget: a token bucket per destination that every retry must draw from.
///
/// # Failures that it prevents
///
/// *Without a budget*, three attempts per call triple the load on a server that is failing because of load. Stacked
/// layers multiply the attempts: three layers with four attempts each make 64. Backoff only delays the same load.
///
/// *One bucket for all destinations* ([`shared`](Self::shared)) lets one dead host spend the tokens that healthy hosts
/// need. The default is one bucket per destination.
///
/// *Too large a capacity* allows that many retries at the start of every outage, per destination and process. *Too
/// small a capacity* refuses retries during a brief fault.
///
/// *A budget built for each request* limits nothing. Build one and clone it.
///
/// If a budget refuses a retry, the caller gets the outcome of the last attempt, not an error from the budget.
///
/// # The kinds
///
/// | kind | cost of a retry | tokens are added by | capacity |
/// |---|---|---|---|
/// | [`cautious`](Self::cautious), the default | 1, returned if the retry succeeds; on credit 2; all retries are refused while failures outweigh successes | a success: 0.2 | 10 |
/// | [`ratio`](Self::ratio), [`percent`](Self::percent) | 1 | a success: the ratio; time: 0.01/s | 10 |
/// | [`ratio_for_traffic`](Self::ratio_for_traffic) | 1 | a success: 0.1; time: 0.01/s | 0.2 · requests per second |
/// | [`rate`](Self::rate), [`rate_for_traffic`](Self::rate_for_traffic) | 1 | time: the rate | the burst |
/// | [`aws_quota`](Self::aws_quota), [`quota`](Self::quota) | 5, or 10 after a timeout; returned if the retry succeeds | a success without a retry: 1 | 500 |
/// | [`unlimited`](Self::unlimited) | nothing | | |
///
/// A call that ends with any response other than a retryable failure is recorded as one success. All buckets start
/// full.
///
/// A request that the server refused before processing it is replaced without a token. Every kind but `unlimited` stops
/// this while refusals outweigh successes, by the doubt of [`cautious`](Self::cautious). Otherwise a server that
/// refuses everything would get twice its load.
///
/// The *trickle* is the number of tokens added per second. With a ratio or a rate, each bucket guarantees, over any
/// period: retries ≤ capacity + ratio · successes + trickle · time. Under a quota the same bound holds for the net cost
/// of retries. [`cautious`](Self::cautious) documents its own bounds. All bounds are exact, because tokens are counted
/// atomically in whole millionths.
///
/// For a ratio or a rate, 10 % of normal traffic is recommended (range 1 to 50 %). The recommended capacity is the
/// number of such retries in two seconds (range one to five seconds).
///
/// # Destinations
///
/// A destination gets its bucket at its first retry, or at its first failure under a cautious budget. At most 1024
/// destinations ([`max_destinations`](Self::max_destinations)) have a bucket at a time. When the table is full, a full
/// bucket is evicted, because its replacement would be full as well. If none of the candidates is full, the least
/// recently used one is evicted. Its destination then starts over with a full bucket, which grants three retries by
/// default, or those of three lost connections. A bucket with a retry in flight is never evicted. If every bucket has
/// one, the remaining destinations share an extra bucket. Their retries then compete for its tokens; first attempts
/// never need tokens.
///
/// # Sharing
///
/// Clones share their buckets; separately built budgets never do. A setter returns a *new* budget with its own full
/// buckets, and does not change earlier clones.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::RetryBudget;
/// # use reattempt_core::{Budget, Failure, FailureKind};
///
/// let budget = RetryBudget::ratio(0.1).capacity(2.0).min_per_second(0.0);
/// let (failure, now) = (Failure::new(FailureKind::Server), Duration::ZERO);
///
/// // Two retries are sent, and the third is refused.
/// for _ in 0..2 {
///     budget.acquire("api:443", &failure, now).expect("a token").spend();
/// }
/// assert!(budget.acquire("api:443", &failure, now).is_none());
/// assert!(budget.acquire("other:443", &failure, now).is_some(), "it has its own bucket");
///
/// // Ten successful calls pay for one more.
/// for _ in 0..10 {
///     budget.on_success("api:443", 0);
/// }
/// assert_eq!(budget.balance("api:443"), 1.0);
/// ```
#[derive(Clone)]
pub struct RetryBudget {
    pub(super) state: Arc<BudgetState>,
}

pub(super) struct BudgetState {
    pub(super) settings: Settings,
    /// `None` if every retry is granted.
    pub(super) buckets: Option<Destinations>,
    /// Cautious buckets, whose doubt limits free replacements, created for the first of those. Empty if `buckets` are
    /// cautious or there are none.
    pub(super) brake: OnceLock<Destinations>,
    /// The number of buckets that a success would change, or 0 if only time adds tokens.
    pub(super) not_full: Arc<NotFull>,
    /// On its own cache line, because writes for a failing destination must not slow down successes of others.
    pub(super) refusals: Apart<AtomicU64>,
}

impl RetryBudget {
    /// Creates a budget of `ratio` retries per successful call: 0.1 allows one retry per ten successes.
    ///
    /// With 0.1, a server that fails half of its calls receives at most 10 % more calls. If only a few percent of calls
    /// fail, all of them are retried. The ratio is rounded to six decimals.
    ///
    /// The capacity is 10, so that a newly started client can retry while a server restarts. Time adds 0.01 tokens per
    /// second, which is one retry per 100 seconds. With 0.1, many clients that each send one call per second would keep
    /// a server down.
    ///
    /// The ratio is clamped to 0.000001 to 1, because a higher one would limit nothing. NaN is treated as 0.000001.
    pub fn ratio(ratio: f64) -> Self {
        Self::build(Settings::of_ratio(millionths(ratio, 0.000_001, 1.0)))
    }

    /// Creates a [`ratio`](Self::ratio) budget of `percent` retries per 100 successful calls.
    ///
    /// The value is clamped to 1 to 100.
    pub fn percent(percent: u32) -> Self {
        Self::build(Settings::of_ratio(u64::from(percent.clamp(1, 100)) * TOKEN / 100))
    }

    /// Creates a ratio budget for a client that normally sends `normal_rps` requests per second to each destination.
    ///
    /// The ratio is 0.1, and time adds 0.01 tokens per second. The capacity covers two seconds of retries: 2 · 0.1 ·
    /// `normal_rps`. It is at least 1, because a smaller bucket would never allow a retry.
    ///
    /// The capacity is clamped as in [`capacity`](Self::capacity). NaN is treated as 0.
    pub fn ratio_for_traffic(normal_rps: f64) -> Self {
        Self::ratio(RATIO).capacity(2.0 * RATIO * normal_rps)
    }

    /// Creates a budget of `per_second` retries per second. Up to `burst` unused retries accumulate.
    ///
    /// Successes add nothing, so this budget also suits clients that cannot detect successes.
    ///
    /// `per_second` is clamped to 0.000001 to 1,000,000, and `burst` to 1 to 10,000,000. NaN is treated as the minimum.
    pub fn rate(per_second: f64, burst: f64) -> Self {
        Self::build(Settings::rate(per_second, burst))
    }

    /// Creates a [`rate`](Self::rate) budget for a client that normally sends `normal_rps` requests per second to each
    /// destination. The rate is a tenth of `normal_rps`. The burst is the number of retries in two seconds at that
    /// rate, but at least 1.
    ///
    /// The rate and the burst are clamped as in [`rate`](Self::rate).
    pub fn rate_for_traffic(normal_rps: f64) -> Self {
        Self::rate(RATIO * normal_rps, 2.0 * RATIO * normal_rps)
    }

    /// Creates the retry quota that AWS's clients use in their standard mode.
    ///
    /// A bucket has 500 tokens. A retry costs 5 tokens, or 10 after a timeout, because an unresponsive server needs
    /// more relief than one that refuses. A call that succeeds after retries returns the cost of its last retry; a call
    /// that succeeds on its first attempt adds 1. Time adds nothing. In an outage, a bucket therefore pays for 100
    /// retries, or for 50 after timeouts.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use reattempt_control::RetryBudget;
    /// # use reattempt_core::{Budget, Failure, FailureKind};
    ///
    /// let quota = RetryBudget::aws_quota();
    /// let timeout = Failure::new(FailureKind::Timeout);
    /// let permit = quota.acquire("s3.example", &timeout, Duration::ZERO);
    /// let retry = permit.expect("it is full").spend();
    /// assert_eq!((retry.cost(), quota.balance("s3.example")), (10, 490.0));
    /// retry.succeed();
    /// assert_eq!(quota.balance("s3.example"), 500.0);
    /// ```
    pub fn aws_quota() -> Self {
        Self::build(Settings::of_quota(Costs::AWS))
    }

    /// Creates AWS's retry quota with custom costs, in tokens, for a retry and for a retry after a timeout.
    ///
    /// Both are clamped to 1 to 500.
    pub fn quota(retry: u32, after_timeout: u32) -> Self {
        Self::build(Settings::of_quota(Costs::new(retry, after_timeout)))
    }

    /// Creates the default budget, which grants nearly every retry while retries help, and almost none in an outage.
    ///
    /// Each destination has tokens *T*, from 0 to 10, and a *doubt* counter *r*, from 0 to 128, which each failure
    /// raises.
    ///
    /// | event | tokens | doubt |
    /// |---|---|---|
    /// | an attempt fails | | + 1, once per [event](Evidence#events) |
    /// | the server refuses a request before processing it; it is replaced if *r* ≤ 3 | | + 1, once per event |
    /// | a retry is sent (requires *r* ≤ 3 and *T* ≥ 1) | − 1, + 1 if it succeeds | |
    /// | a retry is sent after the server throttled (429) (requires *r* ≤ 3 and *T* ≥ 2) | − 2 | |
    /// | a hedge is sent (requires *r* ≤ 2 and *T* ≥ 2) | − 2 | + 1 |
    /// | a call succeeds, or ends with a permanent-failure response | + 0.2 | − 2 |
    /// | no attempt has failed for 10 minutes | set to 10 | set to 0 |
    ///
    /// A retry that succeeds proves that retrying helps, so its token is returned. Successes remove doubt slowly. If
    /// one success removed all doubt, every success would let every client retry again, and an overloaded server would
    /// stay down. A successful hedge, or a successful retry after 429, does not prove that the server has spare
    /// capacity. Both therefore cost more and return nothing.
    ///
    /// If 30 % of all attempts fail, 96 % of calls succeed within three attempts.
    ///
    /// # Events
    ///
    /// A lost connection fails all calls on it, but it is one cause. Failures of attempts that were sent before the
    /// first of them was seen are one event. The event adds 1 to the doubt, and is granted if a retry would be. All its
    /// calls may then be retried: while tokens are left at the usual cost, and after that on credit, if the event is
    /// the only doubt (*r* ≤ 1). A retry on credit costs 2, and its success returns nothing.
    /// [`overdraft`](Self::overdraft) limits the debt, to 512 tokens by default. Until successes have repaid it, no
    /// further event is granted.
    ///
    /// Lost connections, refused connections, refused streams and expired tokens form events. Timeouts, 429 and 5xx are
    /// the signs of overload and count one by one. A failure of this machine, such as a missing port, adds no doubt.
    ///
    /// # Bounds
    ///
    /// These bounds hold per destination, over any period without 10 minutes of quiet, under any thread interleaving.
    /// *S* is the destination's number of successes.
    ///
    /// * Retries and hedges, except those on credit, ≤ 10 + 0.2 · *S* + successful retries.
    /// * Retries on credit ≤ 256 + 0.1 · *S*.
    /// * Retries and hedges after failures that stand alone ≤ 3 + 2 · *S*, which is three in a total outage.
    /// * Without a success, the calls of at most three events are retried, and those of only one on credit.
    /// * Without a success, refused requests are replaced in at most three events.
    ///
    /// # Limits
    ///
    /// A client with fewer than one call per 10 minutes is not limited, because each call starts with a full bucket. If
    /// a server fails more than two thirds of its attempts, its bucket grants no retries.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use reattempt_control::RetryBudget;
    /// # use reattempt_core::{Budget, Failure, FailureKind};
    ///
    /// let budget = RetryBudget::cautious();
    /// let (busy, now) = (Failure::new(FailureKind::Server), Duration::ZERO);
    /// let retry = || budget.acquire_after_failure("api:443", &busy.into(), now).map(|permit| permit.spend());
    ///
    /// // In an outage three retries are sent.
    /// let sent = (0..1000).filter(|_| retry().is_some()).count();
    /// assert_eq!((sent, budget.balance("api:443")), (3, 7.0));
    ///
    /// // Doubt counts at most 128 failures. After 62 successes some doubt is left, and two more remove it.
    /// (0..62).for_each(|_| budget.on_success("api:443", 0));
    /// assert!(retry().is_none());
    /// (0..2).for_each(|_| budget.on_success("api:443", 0));
    /// assert!(retry().is_some());
    /// ```
    pub fn cautious() -> Self {
        Self::build(Settings::CAUTIOUS)
    }

    /// Creates a budget that grants every retry and keeps no state.
    ///
    /// Use it only if retries are limited elsewhere.
    #[doc(alias("no_budget", "disabled"))]
    pub fn unlimited() -> Self {
        Self::build(Settings::UNLIMITED)
    }

    /// Sets the capacity in tokens (the burst of a rate budget). Returns a new budget with full buckets.
    ///
    /// The value is clamped to 1 to 10,000,000, or to 2 to 1000 for a cautious budget. For a quota, it is at least the
    /// cost of the most expensive retry. NaN is treated as the minimum. An unlimited budget has no capacity, and
    /// `validate` then returns a warning.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn capacity(self, tokens: f64) -> Self {
        Self::build(self.state.settings.capacity(tokens))
    }

    /// Sets the trickle: the tokens added per second. Returns a new budget with full buckets.
    ///
    /// With 0, a client that has run out of tokens can retry again only after successes.
    ///
    /// The value is clamped to 0 to 1,000,000, and NaN is treated as 0. Only a ratio budget and a quota have a trickle.
    /// For other kinds this setting has no effect, and `validate` returns a warning.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn min_per_second(self, per_second: f64) -> Self {
        Self::build(self.state.settings.min_per_second(per_second))
    }

    /// Sets the largest debt of a cautious budget, in tokens. Returns a new budget with full buckets.
    ///
    /// A lost connection may end more calls than there are tokens. If that event is the only sign of trouble, the calls
    /// beyond the tokens are retried on credit. Such a retry costs 2 tokens, which its success does not return.
    /// Default: 512, which repeats all calls of a client with 256 calls on one connection. 0 turns this off, and the
    /// tokens limit the retries.
    ///
    /// Higher values are lowered to 512. For other kinds this setting has no effect, and `validate` returns a warning.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn overdraft(self, tokens: u32) -> Self {
        Self::build(self.state.settings.overdraft(tokens))
    }

    /// Uses one bucket for all destinations if `on`. Returns a new budget with full buckets. Default: one bucket per
    /// destination.
    ///
    /// Use it only for clients of a single service, because one failing host uses up the tokens of all hosts. A later
    /// call to [`max_destinations`](Self::max_destinations) undoes this setting.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn shared(self, on: bool) -> Self {
        let most = self.state.settings.max_destinations.unwrap_or(DEFAULT_DESTINATIONS);
        Self::build(Settings { max_destinations: (!on).then_some(most), ..self.state.settings })
    }

    /// Uses one bucket per destination, for at most `most` destinations. Returns a new budget with full buckets.
    /// Default: 1024, whose buckets take a few hundred kilobytes. The number is clamped to 1 to 65536.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn max_destinations(self, most: usize) -> Self {
        Self::build(Settings { max_destinations: Some(clamped_destinations(most)), ..self.state.settings })
    }

    /// Returns this budget with the state of a former one, so that settings can be replaced while calls are in flight.
    ///
    /// If the settings are the same, the result is a clone of the former budget. If only numeric settings differ, each
    /// destination keeps its doubt and its tokens, up to the new capacity. Changing such a setting during an outage
    /// therefore grants no additional retries. Retries in flight return their tokens to the former budget. A budget of
    /// a different kind starts with full buckets.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # use reattempt_control::RetryBudget;
    /// # use reattempt_core::{Budget, Failure, FailureKind};
    ///
    /// let former = RetryBudget::ratio(0.1).capacity(3.0);
    /// let failure = Failure::new(FailureKind::Server);
    /// former.acquire("api:443", &failure, Duration::ZERO).expect("a token").spend();
    ///
    /// let budget = RetryBudget::ratio(0.2).capacity(50.0).continuing(&former);
    /// assert_eq!(budget.balance("api:443"), 2.0);
    /// assert_eq!(RetryBudget::cautious().continuing(&former).balance("api:443"), 10.0);
    /// ```
    #[must_use = "the state is in the budget that is returned"]
    pub fn continuing(self, former: &Self) -> Self {
        let (new, old) = (&self.state.settings, &former.state.settings);
        if new == old {
            return former.clone();
        }
        let same_kind = std::mem::discriminant(&new.kind) == std::mem::discriminant(&old.kind);
        if same_kind && new.max_destinations.is_some() == old.max_destinations.is_some() {
            let both = self.state.buckets.iter().zip(&former.state.buckets);
            let brakes = former.state.brake.get().and_then(|former| Some((self.brake()?, former)));
            both.chain(brakes).for_each(|(buckets, former)| buckets.restore(former));
        }
        self
    }

    /// Returns the tokens of `destination` as of its last retry or success, or infinity for an unlimited budget.
    ///
    /// This method reads no clock, so it excludes tokens added over time since then. At most once every ten seconds, a
    /// retry to any destination also updates every bucket that has become full over time.
    pub fn balance(&self, destination: &str) -> f64 {
        let buckets = self.state.buckets.as_ref();
        buckets.map_or(f64::INFINITY, |buckets| units(buckets.balance(destination)))
    }

    /// Returns `true` if a success would not change the bucket of `destination`.
    ///
    /// Like [`balance`](Self::balance), this method reads no clock.
    pub fn is_full_for(&self, destination: &str) -> bool {
        let mut both = self.state.buckets.iter().chain(self.state.brake.get());
        self.state.not_full.count() == 0 || both.all(|buckets| buckets.is_full(destination))
    }

    /// Returns every destination that has its own bucket, with its [`balance`](Self::balance), sorted by name.
    ///
    /// The list is empty for a shared or an unlimited budget.
    pub fn destinations(&self) -> Vec<(Arc<str>, f64)> {
        let mut own = self.state.buckets.as_ref().map_or_else(Vec::new, |buckets| buckets.balances().0);
        own.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        own.into_iter().map(|(name, bucket)| (name, units(bucket.tokens))).collect()
    }

    /// Returns the total number of retries and hedges refused since the budget was built.
    pub fn refusals(&self) -> u64 {
        self.state.refusals.0.load(Ordering::Relaxed)
    }

    fn build(settings: Settings) -> Self {
        let not_full = Arc::new(NotFull::new());
        let counted = match settings.kind {
            // No success changes such a bucket, so it is counted separately, where no success reads the count.
            Kind::Tokens(rule) if rule.ratio == 0 => Arc::new(NotFull::new()),
            _ => Arc::clone(&not_full),
        };
        let most = settings.max_destinations;
        let buckets = settings.kind.bucket_rule().map(|rule| Destinations::new(most, rule, counted));
        let (brake, refusals) = (OnceLock::new(), Apart::default());
        Self { state: Arc::new(BudgetState { settings, buckets, brake, not_full, refusals }) }
    }

    /// Returns the buckets whose doubt limits free replacements, if the budget limits anything.
    pub(super) fn brake(&self) -> Option<&Destinations> {
        let BudgetState { settings, buckets, brake, not_full, .. } = &*self.state;
        let Some(rule) = settings.kind.brake_rule() else { return buckets.as_ref() };
        let new = || Destinations::new(settings.max_destinations, rule, Arc::clone(not_full));
        Some(brake.get_or_init(new))
    }
}

/// The default is [`RetryBudget::cautious`].
impl Default for RetryBudget {
    fn default() -> Self {
        Self::cautious()
    }
}
