//! The budget that users name, and its constructors and settings.

use std::sync::Arc;

use reattempt_core::ConfigError;

use super::bucket::Bucket;
use super::cautious::CautiousBucket;
use super::destination_bucket::DestinationBucket;
use super::destinations::Destinations;
use super::not_full::{NotFull, Slot};
use super::settings::{Costs, Kind, Settings, tokens};
use super::store::{Shared, Store, Unlimited};
use crate::sync::{Apart, AtomicU64, Ordering};

/// A bucket of tokens for each destination, in front of every retry.
///
/// # What goes wrong without it, and with it
///
/// *Without a budget*, three attempts a call triple the load on a server that fails because of its load. In layers they
/// multiply: three layers of four attempts are 64. Backoff only delays the same load.
///
/// *One bucket for all destinations* ([`shared`](Self::shared)) lets one dead host spend the tokens that healthy hosts
/// need. The default is a bucket for each.
///
/// *A capacity that is too large* allows a burst of as many retries at the start of every outage, for each destination
/// and process. *A capacity that is too small* refuses the retries of a short fault.
///
/// *A budget built for each request* limits nothing. Build one and clone it.
///
/// If a budget refuses a retry, the caller gets the last real outcome and not an error of the budget.
///
/// # The kinds
///
/// | kind | a retry takes | tokens are added by | capacity |
/// |---|---|---|---|
/// | [`cautious`](Self::cautious), the default | 1, returned if it succeeds; refused while failures outweigh successes | a success: 0.2 | 10 |
/// | [`ratio`](Self::ratio), [`percent`](Self::percent) | 1 | a success: the ratio; time: 0.01/s | 10 |
/// | [`ratio_for_traffic`](Self::ratio_for_traffic) | 1 | a success: 0.1; time: 0.01/s | 0.2 · requests per second |
/// | [`rate`](Self::rate), [`rate_for_traffic`](Self::rate_for_traffic) | 1 | time: the rate | the burst |
/// | [`aws_quota`](Self::aws_quota), [`quota`](Self::quota) | 5, after a timeout 10; returned if it succeeds | a success without a retry: 1 | 500 |
/// | [`unlimited`](Self::unlimited) | nothing | | |
///
/// A response that is no retryable failure counts as a success, once for each call. All buckets start full.
///
/// The *trickle* is the rate at which time adds tokens. With a ratio or a rate, in any stretch of time and for each
/// bucket: retries ≤ capacity + ratio · successes + trickle · time. Under a quota the same bound holds for the cost of
/// the retries, less the costs returned. [`cautious`](Self::cautious) has bounds of its own. All bounds are exact:
/// tokens are whole millionths, changed by compare-and-swap.
///
/// Recommended for a ratio or a rate: 10 % of the normal traffic (1 to 50 %). Its capacity should be two seconds of
/// such retries (one to five).
///
/// # Destinations
///
/// A destination gets its bucket at its first retry, or under a cautious budget at its first failure. At most 1024
/// ([`max_destinations`](Self::max_destinations)) have one at a time. If there is no place for another, a full bucket
/// is dropped, because a new one would be full as well. If none of those next in turn is full, the one that was used
/// least recently is dropped. Its destination may then be sent as many retries again as a full bucket grants: three by
/// default, ten after lost connections. A bucket with a retry under way is not dropped. If each has one, the
/// destinations without a place share one bucket. It may refuse a retry, but never a call.
///
/// # Sharing
///
/// Clones share their buckets; separately built budgets never do. A setter returns a *new* budget with full buckets of
/// its own, and does not change earlier clones.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::RetryBudget;
/// # use reattempt_core::{Budget, Failure, FailureKind};
///
/// let budget = RetryBudget::ratio(0.1)?.capacity(2.0)?.min_per_second(0.0)?;
/// let (failure, now) = (Failure::new(FailureKind::Server), Duration::ZERO);
///
/// // Two retries are sent, and the third is refused.
/// for _ in 0..2 {
///     budget.acquire("api:443", &failure, now).expect("a token").spend();
/// }
/// assert!(budget.acquire("api:443", &failure, now).is_none());
/// assert!(budget.acquire("other:443", &failure, now).is_some(), "it has its own bucket");
///
/// // Ten calls that succeed pay for one more.
/// for _ in 0..10 {
///     budget.on_success("api:443", 0);
/// }
/// assert_eq!(budget.balance("api:443"), 1.0);
/// # Ok::<(), reattempt_core::ConfigError>(())
/// ```
#[derive(Clone)]
pub struct RetryBudget {
    pub(super) state: Arc<State>,
}

pub(super) struct State {
    pub(super) settings: Settings,
    pub(super) store: Box<dyn Store>,
    /// The bucket of all destinations, if each retry takes one token from it and nothing else.
    pub(super) shared: Option<Arc<Bucket>>,
    /// The number of buckets that a success would change; 0 if only time adds tokens.
    pub(super) not_full: Arc<NotFull>,
    /// Apart, because it is written while a destination fails, which must not slow down the successes of others.
    pub(super) refusals: Apart<AtomicU64>,
}

impl RetryBudget {
    /// Creates a budget of `ratio` retries for each call that succeeds: 0.1 allows one for ten.
    ///
    /// With 0.1, a server that fails half of its calls receives at most a tenth more calls. If a few percent of calls
    /// fail, all of them are retried. The ratio is kept to six decimals.
    ///
    /// The capacity is 10, so that a client that has just started can retry while a server restarts. The trickle is
    /// 0.01 tokens a second: one retry in a hundred seconds. With a trickle of 0.1, many clients of one call a second
    /// would keep a server down.
    ///
    /// # Errors
    ///
    /// Returns an error unless `ratio` is a number from 0.000001 to 1. A higher ratio would limit nothing.
    pub fn ratio(ratio: f64) -> Result<Self, ConfigError> {
        Settings::ratio(ratio).map(Self::build)
    }

    /// Creates a [`ratio`](Self::ratio) budget of this many retries for each 100 calls that succeed.
    ///
    /// The number is clamped to 1 to 100.
    pub fn percent(percent: u32) -> Self {
        Self::build(Settings::percent(percent))
    }

    /// Creates the ratio budget for a client that normally sends `normal_rps` requests per second to a destination.
    ///
    /// Ratio 0.1, trickle 0.01 tokens a second. The capacity is 2 · 0.1 · `normal_rps`, two seconds of the retries that
    /// the ratio allows. It is at least 1, because a smaller bucket would never allow a retry.
    ///
    /// # Errors
    ///
    /// Returns an error unless `normal_rps` is a number from 0.00001 to 10000000.
    pub fn ratio_for_traffic(normal_rps: f64) -> Result<Self, ConfigError> {
        Settings::ratio_for(normal_rps).map(Self::build)
    }

    /// Creates a budget of `per_second` retries per second. Up to `burst` unused ones accumulate.
    ///
    /// Successes add nothing, so it suits clients that cannot detect them.
    ///
    /// # Errors
    ///
    /// Returns an error unless `per_second` is a number from 0.000001 to 1000000 and `burst` one from 1 to 10000000.
    pub fn rate(per_second: f64, burst: f64) -> Result<Self, ConfigError> {
        Settings::rate(per_second, burst).map(Self::build)
    }

    /// Creates the [`rate`](Self::rate) budget for a client that normally sends `normal_rps` requests per second to a
    /// destination. The rate is a tenth of that, and the burst is twice the rate but at least 1.
    ///
    /// # Errors
    ///
    /// Returns an error unless `normal_rps` is a number from 0.00001 to 10000000.
    pub fn rate_for_traffic(normal_rps: f64) -> Result<Self, ConfigError> {
        Settings::rate_for(normal_rps).map(Self::build)
    }

    /// Creates the retry quota of AWS's clients in their standard mode.
    ///
    /// A bucket has 500 tokens. A retry costs 5. After a timeout it costs 10, because a server that no longer answers
    /// needs rest more than one that refuses. A call that succeeds after retries returns the cost of the last one; a
    /// call that succeeds at once adds 1. Time adds nothing. So in an outage a bucket pays for 100 retries, or for 50
    /// after timeouts.
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

    /// Creates AWS's retry quota with other costs: of a retry, and of a retry after a timeout, in tokens.
    ///
    /// # Errors
    ///
    /// Returns an error unless `retry` and `after_timeout` are from 1 to 500.
    pub fn quota(retry: u32, after_timeout: u32) -> Result<Self, ConfigError> {
        Settings::quota(retry, after_timeout).map(Self::build)
    }

    /// Creates the default budget: it grants nearly every retry while retries help, and nearly none in an outage.
    ///
    /// Each destination has tokens *T*, from 0 to 10, and *doubt* *r*, from 0 to 128, which rises with each failure.
    ///
    /// | event | tokens | doubt |
    /// |---|---|---|
    /// | an attempt fails | | + 1 |
    /// | a retry is sent; it needs *r* ≤ 3 and *T* ≥ 1 | − 1, + 1 if it succeeds | |
    /// | a retry is sent after the server throttled (429); it needs *r* ≤ 3 and *T* ≥ 2 | − 2 | |
    /// | a hedge is sent; it needs *r* ≤ 2 and *T* ≥ 2 | − 2 | + 1 |
    /// | a call succeeds, or ends with a permanent failure in a response | + 0.2 | − 2 |
    /// | no attempt has failed for 10 minutes | 10 | 0 |
    ///
    /// A retry that succeeds proves that retrying helps, so it returns its token. Successes remove doubt slowly. If the
    /// first success removed it all, every success would let every client retry again, and an overloaded server would
    /// stay down. A hedge that succeeds proves nothing. Nor does a retry after 429, because the server is overloaded
    /// all the same. So both cost more and return nothing.
    ///
    /// With 30 % of all attempts failing, 96 % of the calls succeed in three attempts. Ten tokens pay for the retries
    /// of the calls on one lost connection.
    ///
    /// # Bounds
    ///
    /// Both hold for each destination, in any stretch of time without 10 minutes of quiet, under any
    /// interleaving of threads. *S* is the number of its successes.
    ///
    /// * Retries and hedges ≤ 10 + 0.2 · *S* + the retries that succeed.
    /// * Retries and hedges ≤ 3 + 2 · *S*: three in a total outage. A lost connection is the exception: all calls that
    ///   fail with it in one tick of 64 ms add doubt once. Only the first bound limits their retries, to ten.
    ///
    /// # Limits
    ///
    /// A client that calls less than once in 10 minutes is not limited, because each of its calls finds a new bucket.
    /// If a server fails more than two attempts of three, its bucket grants no retries.
    ///
    /// ```
    /// use std::time::Duration;
    /// # use reattempt_control::RetryBudget;
    /// # use reattempt_core::{Budget, Failure, FailureKind};
    ///
    /// let budget = RetryBudget::cautious();
    /// let (busy, now) = (Failure::new(FailureKind::Server), Duration::ZERO);
    /// let retry = || budget.acquire_after_failure("api:443", &busy, now).map(|permit| permit.spend());
    ///
    /// // In an outage three retries are sent.
    /// let sent = (0..1000).filter(|_| retry().is_some()).count();
    /// assert_eq!((sent, budget.balance("api:443")), (3, 7.0));
    ///
    /// // At most 128 failures are counted. So 62 successes leave doubt, and two more remove it.
    /// (0..62).for_each(|_| budget.on_success("api:443", 0));
    /// assert!(retry().is_none());
    /// (0..2).for_each(|_| budget.on_success("api:443", 0));
    /// assert!(retry().is_some());
    /// ```
    pub fn cautious() -> Self {
        Self::build(Settings::CAUTIOUS)
    }

    /// Creates a budget that grants every retry and counts nothing.
    ///
    /// Only for callers whose retries are bounded elsewhere.
    #[doc(alias("no_budget", "disabled"))]
    pub fn unlimited() -> Self {
        Self::build(Settings::UNLIMITED)
    }

    /// Sets the capacity in tokens (the burst of a rate budget). Returns a new budget with full buckets.
    ///
    /// # Errors
    ///
    /// Returns an error unless `tokens` is a number from 1 to 10000000. A cautious budget allows 2 to 1000, and a quota
    /// at least the cost of its dearest retry. An unlimited budget has no capacity.
    pub fn capacity(self, tokens: f64) -> Result<Self, ConfigError> {
        self.state.settings.capacity(tokens).map(Self::build)
    }

    /// Sets the trickle: the tokens that time adds per second. Returns a new budget with full buckets.
    ///
    /// With 0, a client that has spent its tokens retries again only after successes.
    ///
    /// # Errors
    ///
    /// Returns an error unless `per_second` is a number from 0 to 1000000 and the budget is a ratio budget or a quota.
    pub fn min_per_second(self, per_second: f64) -> Result<Self, ConfigError> {
        self.state.settings.min_per_second(per_second).map(Self::build)
    }

    /// Uses one bucket for all destinations if `on`. Returns a new budget with full buckets. Default: a bucket for
    /// each.
    ///
    /// Only for clients of a single service, because one bad host spends the tokens of all. A later
    /// [`max_destinations`](Self::max_destinations) undoes it.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn shared(self, on: bool) -> Self {
        Self::build(self.state.settings.shared(on))
    }

    /// Uses a bucket for each destination, and at most this many. Returns a new budget with full buckets. Default 1024,
    /// which take some hundred kilobytes. The number is clamped to 1 to 65536.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn max_destinations(self, most: usize) -> Self {
        Self::build(self.state.settings.max_destinations(most))
    }

    /// Returns the tokens of `destination` after its last retry or success; infinite for an unlimited budget.
    ///
    /// Tokens that time has added since are not counted, because this method reads no clock. But a retry to any
    /// destination, at most every ten seconds, marks the buckets that time has filled as full.
    pub fn balance(&self, destination: &str) -> f64 {
        self.state.store.balance(destination).map_or(f64::INFINITY, tokens)
    }

    /// Returns `true` if a success would not change the bucket of `destination`.
    ///
    /// Like [`balance`](Self::balance) it reads no clock.
    pub fn is_full_for(&self, destination: &str) -> bool {
        self.state.not_full.count() == 0 || self.state.store.is_full(destination)
    }

    /// Returns every destination that has a bucket of its own, with its [`balance`](Self::balance), by name.
    ///
    /// Empty for a shared or an unlimited budget.
    pub fn destinations(&self) -> Vec<(Arc<str>, f64)> {
        let (mut own, _) = self.state.store.balances();
        own.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        own.into_iter().map(|(name, balance)| (name, tokens(balance.tokens))).collect()
    }

    /// Returns the number of retries and hedges refused since the budget was built, over all destinations.
    pub fn refusals(&self) -> u64 {
        self.state.refusals.0.load(Ordering::Relaxed)
    }

    fn build(settings: Settings) -> Self {
        let not_full = Arc::new(NotFull::new());
        let counted = Arc::clone(&not_full);
        let (store, shared) = match settings.kind {
            Kind::Unlimited => (Box::new(Unlimited) as Box<dyn Store>, None),
            // No success changes such a bucket, so the count of those that are not full is one that no success reads.
            Kind::Tokens(rule) if rule.ratio == 0 => {
                store::<Bucket>(settings, (rule, Costs::ONE), Arc::new(NotFull::new()))
            }
            Kind::Tokens(rule) => store::<Bucket>(settings, (rule, Costs::ONE), counted),
            Kind::Quota(rule, costs) => (store::<Bucket>(settings, (rule, costs), counted).0, None),
            Kind::Cautious(rule) => (store::<CautiousBucket>(settings, rule, counted).0, None),
        };
        let refusals = Apart::default();
        Self { state: Arc::new(State { settings, store, shared, not_full, refusals }) }
    }
}

/// The default is [`RetryBudget::cautious`].
impl Default for RetryBudget {
    fn default() -> Self {
        Self::cautious()
    }
}

/// Creates the full buckets of a budget, and returns the one that all destinations share, if they do.
fn store<B: DestinationBucket>(
    settings: Settings,
    rule: B::Rule,
    not_full: Arc<NotFull>,
) -> (Box<dyn Store>, Option<Arc<B>>) {
    match settings.max_destinations {
        Some(most) => (Box::new(Destinations::<B>::new(most, rule, not_full)), None),
        None => {
            let bucket = Arc::new(B::create(rule, (not_full, Slot::NONE)));
            (Box::new(Shared { bucket: Arc::clone(&bucket), rule }), Some(bucket))
        }
    }
}
