//! The budget that users name, and its constructors and settings.

use std::sync::Arc;

use reattempt_core::ConfigError;

use super::bucket::Bucket;
use super::cautious::CautiousBucket;
use super::settings::{Kind, Quota, Settings, tokens};
use super::store::Store;
use crate::sync::{Apart, AtomicU64, Ordering};

/// A bucket of tokens for each destination, in front of every retry.
///
/// # What goes wrong without it, and with it
///
/// *Without a budget*, three attempts a call are three times the load for a server that is failing
/// because of its load. In layers they multiply: three layers of four attempts are 64. Backoff does
/// not help, it only puts the same load off.
///
/// *One bucket for all destinations* ([`shared`](Self::shared)) lets one dead host spend what the
/// healthy ones need for their few stray failures. One bucket for each is the default.
///
/// *A capacity that is too large* is a burst of that many retries at the start of every outage, for
/// each destination and from each process: 200 clients with a capacity of 10 may send 2000 retries
/// before the first is refused. One that is too small refuses the retries of a harmless blip. A
/// quiet client lives from capacity and trickle alone, a busy one from the ratio.
///
/// *A budget built for each request or each client* limits nothing. Build one, clone it.
///
/// A retry that is refused is not an error of its own: the caller gets the last real outcome.
///
/// # The kinds
///
/// | kind | rule | defaults and their reason |
/// |---|---|---|
/// | [`cautious`](Self::cautious), the default | a failed attempt adds 1 to the doubt and a success removes 2; a retry needs a doubt of at most 3, takes 1 and returns it if it succeeds; a success adds 0.2 | capacity 10: the retries of a lost connection. With 30 % of the attempts failing 96 % of the calls succeed, and an outage is sent at most three retries |
/// | [`ratio`](Self::ratio), [`percent`](Self::percent) | a response that is no retryable failure adds `ratio`, once for each call; a retry takes 1; a trickle keeps a quiet client able to retry | ratio 0.1: a server that fails half its calls sees at most a tenth more of them, while stray failures of a few percent are all retried. Capacity 10, full at the start: a client that has just started survives the restart of a server. Trickle 0.01/s: one retry in a hundred seconds; a tenth of a token a second would be a tenth of the load of a client of one call a second, and many such clients together keep a server down |
/// | [`ratio_for_traffic`](Self::ratio_for_traffic) | the same | capacity 2 · 0.1 · the client's normal requests per second: two seconds of the retries that the ratio allows |
/// | [`rate`](Self::rate), [`rate_for_traffic`](Self::rate_for_traffic) | refills at a rate up to a burst, whatever succeeds; a retry takes 1 | rate 0.1 · the client's normal requests per second, burst 2 · rate: the same share, for clients whose traffic is steady and whose successes cannot be told |
/// | [`aws_quota`](Self::aws_quota), [`quota`](Self::quota) | a retry takes 5, after a timeout 10; a success gives back what the call's last retry took, or else adds 1 | capacity 500, full at the start, no trickle: what AWS's clients have |
/// | [`unlimited`](Self::unlimited) | grants everything | for callers whose retries are bounded elsewhere |
///
/// So in any stretch of time, for each bucket,
/// retries ≤ capacity + ratio · successes + trickle · time, exactly: tokens are whole millionths,
/// changed by compare-and-swap, never below zero and never above the capacity. When everything
/// fails, successes are none and the retries die down to the trickle. Under a quota the same holds of
/// what the retries cost, with what came back as one more thing earned.
///
/// Recommended: a ratio or rate of 1 to 50 % of the normal traffic (10 %), a burst of 1 to 5 seconds
/// of the retries so allowed (2).
///
/// # Destinations
///
/// A destination gets its bucket when it first asks for a token; before that it has a full one. At
/// most 1024 ([`max_destinations`](Self::max_destinations)) have one at a time. When another comes,
/// the buckets that are full by then are dropped, for a new one would be full as well; no other is,
/// for that would make tokens out of nothing. If none is full, the newcomer shares one bucket with
/// all others who find no place. Once there is a place again it starts with a full bucket of its
/// own.
///
/// # Sharing
///
/// Clones share their buckets, separate builds never do. A setter makes a *new* budget, with full
/// buckets of its own, and leaves clones taken before as they are: no bucket is ever under two rules.
///
/// ```
/// use std::time::Duration;
/// use reattempt_control::RetryBudget;
/// use reattempt_core::{Budget, Failure, FailureKind};
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
    pub(super) buckets: Buckets,
    /// Written while a destination is failing, and not to slow down the successes of the others.
    pub(super) refusals: Apart<AtomicU64>,
}

/// With a tag of its own: every success reads it, and to work it out of a neighbouring value takes longer.
#[repr(u8)]
pub(super) enum Buckets {
    None,
    Tokens(Store<Bucket>),
    Cautious(Store<CautiousBucket>),
}

impl RetryBudget {
    /// A budget of `ratio` retries for each call that succeeds: 0.1 allows one for ten.
    ///
    /// The ratio is kept to six decimals. Capacity 10, starts full; trickle 0.01 tokens a second.
    ///
    /// # Errors
    ///
    /// If `ratio` is not a number from 0.000001 to 1: with more retries than successes there would
    /// be no limit to speak of.
    pub fn ratio(ratio: f64) -> Result<Self, ConfigError> {
        Settings::ratio(ratio).map(Self::build)
    }

    /// A budget of this many retries for each 100 calls that succeed: [`ratio`](Self::ratio) in percent.
    ///
    /// A figure outside of 1 to 100 counts as the nearer of the two.
    pub fn percent(percent: u32) -> Self {
        Self::build(Settings::percent(percent))
    }

    /// The ratio budget for a client that normally sends `normal_rps` requests per second to a
    /// destination: ratio 0.1, trickle 0.01 tokens a second, capacity 2 · 0.1 · `normal_rps` but at
    /// least 1, for a bucket that cannot hold one token would never allow a retry.
    ///
    /// # Errors
    ///
    /// If `normal_rps` is not a number from 0.00001 to 10000000.
    pub fn ratio_for_traffic(normal_rps: f64) -> Result<Self, ConfigError> {
        Settings::ratio_for(normal_rps).map(Self::build)
    }

    /// A budget of `per_second` retries per second, of which up to `burst` are saved up.
    ///
    /// Starts with `burst` tokens. Successes add nothing.
    ///
    /// # Errors
    ///
    /// If `per_second` is not a number from 0.000001 to 1000000, or `burst` not one from 1 to
    /// 10000000.
    pub fn rate(per_second: f64, burst: f64) -> Result<Self, ConfigError> {
        Settings::rate(per_second, burst).map(Self::build)
    }

    /// The [`rate`](Self::rate) budget for a client that normally sends `normal_rps` requests per
    /// second to a destination: a tenth of that, with a burst of twice the rate but at least 1.
    ///
    /// # Errors
    ///
    /// If `normal_rps` is not a number from 0.00001 to 10000000.
    pub fn rate_for_traffic(normal_rps: f64) -> Result<Self, ConfigError> {
        Settings::rate_for(normal_rps).map(Self::build)
    }

    /// The retry quota of AWS's clients in their standard mode.
    ///
    /// 500 tokens, full at the start. A retry costs 5, after a timeout 10, for a server that no
    /// longer answers needs rest more than one that refuses. When a call succeeds after retries, what
    /// the last of them cost comes back; a call that succeeds at once gives 1. Nothing comes by time:
    /// in an outage a bucket pays for 100 retries, or 50 after timeouts, and then for one after five
    /// successes.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt_control::RetryBudget;
    /// use reattempt_core::{Budget, Failure, FailureKind};
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
        Self::build(Settings::of_quota(Quota::AWS))
    }

    /// The retry quota with other costs of a retry: after a failure that is no timeout, and after one.
    ///
    /// # Errors
    ///
    /// If `retry` or `after_timeout` is not a number from 1 to 500.
    pub fn quota(retry: u32, after_timeout: u32) -> Result<Self, ConfigError> {
        Settings::quota(retry, after_timeout).map(Self::build)
    }

    /// A budget that grants next to every retry while retries help, and next to none in an outage.
    ///
    /// Each destination has tokens *T*, from 0 to 10, and doubt *r*, from 0 to 128.
    ///
    /// | event | tokens | doubt |
    /// |---|---|---|
    /// | an attempt fails | | + 1 |
    /// | a retry is sent; it needs *r* ≤ 3 and *T* ≥ 1 | − 1, + 1 if it succeeds | |
    /// | a retry is sent although the server throttled (429); it needs *r* ≤ 3 and *T* ≥ 2 | − 2 | |
    /// | a hedge is sent; it needs *r* ≤ 2 and *T* ≥ 2 | − 2 | + 1 |
    /// | a call succeeds, or fails in a way that a retry would not mend | + 0.2 | − 2 |
    /// | no attempt has failed for 10 minutes | 10 | 0 |
    ///
    /// A retry that succeeds proves that retrying helps, so it returns its token. A failure adds doubt, and
    /// successes remove it slowly: a budget that forgets on the first success keeps an overloaded server
    /// down, for each success lets every client retry again. A hedge proves nothing, and a server that answers
    /// 429 is overloaded whether or not the next attempt succeeds: so these cost more, and return nothing.
    ///
    /// # Bounds
    ///
    /// Both hold for each destination, in any stretch of time without 10 minutes of quiet, under any
    /// interleaving of threads. *S* is the number of its successes.
    ///
    /// * Retries and hedges ≤ 10 + 0.2 · *S* + the retries that succeed.
    /// * Retries and hedges ≤ 3 + 2 · *S*: three in a total outage. A connection that is lost is the
    ///   exception: calls that fail with it within 64 ms are one piece of news, and the first bound
    ///   alone limits their retries.
    ///
    /// # Limits
    ///
    /// A client that calls less than once in 10 minutes is not limited: each of its calls finds a new bucket.
    /// A server that fails more than two attempts of three closes the bucket.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt_control::RetryBudget;
    /// use reattempt_core::{Budget, Failure, FailureKind};
    ///
    /// let budget = RetryBudget::cautious();
    /// let (busy, now) = (Failure::new(FailureKind::Server), Duration::ZERO);
    /// let retry = || budget.acquire_after_failure("api:443", &busy, now).map(|permit| permit.spend());
    ///
    /// // In an outage three retries are sent.
    /// let sent = (0..1000).filter(|_| retry().is_some()).count();
    /// assert_eq!((sent, budget.balance("api:443")), (3, 7.0));
    ///
    /// // 63 successes remove the doubt of a thousand failures, of which 128 are counted.
    /// (0..62).for_each(|_| budget.on_success("api:443", 0));
    /// assert!(retry().is_none());
    /// (0..2).for_each(|_| budget.on_success("api:443", 0));
    /// assert!(retry().is_some());
    /// ```
    pub fn cautious() -> Self {
        Self::build(Settings::CAUTIOUS)
    }

    /// No limit: every retry is granted, nothing is counted.
    ///
    /// Only for callers whose retries are bounded elsewhere.
    #[doc(alias("no_budget", "disabled"))]
    pub fn unlimited() -> Self {
        Self::build(Settings::UNLIMITED)
    }

    /// Returns a budget of the same rule with this capacity in tokens (the burst of a rate budget), as a new budget
    /// with full buckets.
    ///
    /// # Errors
    ///
    /// If `tokens` is not a number from 1 to 10000000, or less than the dearest retry of a quota
    /// costs, or the budget is unlimited.
    pub fn capacity(self, tokens: f64) -> Result<Self, ConfigError> {
        self.state.settings.capacity(tokens).map(Self::build)
    }

    /// Returns a budget of the same rule with this many tokens added per second whatever succeeds, as a new budget with
    /// full buckets. 0 turns the trickle off: a client that has spent its tokens then retries again
    /// only after successes.
    ///
    /// # Errors
    ///
    /// If `per_second` is not a number from 0 to 1000000, or the budget is not a ratio budget.
    pub fn min_per_second(self, per_second: f64) -> Result<Self, ConfigError> {
        self.state.settings.min_per_second(per_second).map(Self::build)
    }

    /// Returns a budget of the same rule with one bucket for all destinations, as a new budget with a full bucket.
    ///
    /// For clients of a single service: one bad host spends the tokens of all. The last of this and
    /// [`max_destinations`](Self::max_destinations) holds.
    #[must_use = "the setting is in the budget that is returned"]
    pub fn shared(self) -> Self {
        Self::build(self.state.settings.shared())
    }

    /// Returns a budget of the same rule with a bucket for each destination and this many of them at most, as a new
    /// budget with full buckets. Default 1024.
    ///
    /// # Errors
    ///
    /// If `most` is not a number from 1 to 65536: each newcomer copies the table, which beyond that
    /// would take milliseconds.
    pub fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        self.state.settings.max_destinations(most).map(Self::build)
    }

    /// The tokens that `destination` can draw on, as the last retry or success left them.
    ///
    /// Tokens that time has added since the last retry are not in it, because nothing here reads a clock;
    /// but at a retry every ten seconds or so, the buckets of all destinations that time has
    /// filled up are full from then on.
    /// Infinite for an unlimited budget.
    pub fn balance(&self, destination: &str) -> f64 {
        match &self.state.buckets {
            Buckets::None => f64::INFINITY,
            Buckets::Tokens(store) => tokens(store.balance(destination)),
            Buckets::Cautious(store) => tokens(store.balance(destination)),
        }
    }

    /// Every destination that has a bucket of its own, with its [`balance`](Self::balance), by
    /// name. Empty for a shared or an unlimited budget.
    pub fn destinations(&self) -> Vec<(Arc<str>, f64)> {
        let mut balances = match &self.state.buckets {
            Buckets::None => None,
            Buckets::Tokens(store) => store.destinations().map(|table| table.balances()),
            Buckets::Cautious(store) => store.destinations().map(|table| table.balances()),
        }
        .unwrap_or_default();
        balances.sort_unstable();
        balances.into_iter().map(|(name, balance, _)| (name, tokens(balance))).collect()
    }

    /// Returns how many retries were refused since the budget was built, over all destinations.
    pub fn refusals(&self) -> u64 {
        self.state.refusals.0.load(Ordering::Relaxed)
    }

    fn build(settings: Settings) -> Self {
        let most = settings.max_destinations;
        let buckets = match settings.kind {
            Kind::Unlimited => Buckets::None,
            Kind::Tokens(rule) | Kind::Quota(rule, _) => Buckets::Tokens(Store::new(most, rule)),
            Kind::Cautious(caution) => Buckets::Cautious(Store::new(most, caution)),
        };
        Self { state: Arc::new(State { settings, buckets, refusals: Apart::default() }) }
    }
}

/// [`RetryBudget::cautious`].
impl Default for RetryBudget {
    fn default() -> Self {
        Self::cautious()
    }
}
