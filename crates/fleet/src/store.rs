//! The traits for stores, and an in-memory store.

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

use crate::rate_rule::{self, Rate, Taken, take};
use crate::rule;

/// An error of a store.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The future that returns a store's answer.
pub type Settling<'a> = Pin<Box<dyn Future<Output = Result<bool, BoxError>> + Send + 'a>>;

/// A store for buckets that many processes share.
///
/// A store has one bucket per key. It atomically applies [`rule::settle`] to a bucket, with the time of its own clock.
/// A missing key means a full bucket.
pub trait BudgetStore: Send + Sync + 'static {
    /// Applies [`rule::settle`] to the bucket of `key`. Returns `true` if `cost` was taken.
    ///
    /// `earned`, `cost` and `least` are millionths of a token. A message that may have arrived is never sent again. The
    /// budget sets time limits, so a store needs none.
    ///
    /// # Errors
    ///
    /// An error is treated as a missing answer: the process decides without the store, and asks again after a second.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the tokens may already have been taken.
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64, least: u64) -> Settling<'a>;
}

impl<S: BudgetStore + ?Sized> BudgetStore for Arc<S> {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64, least: u64) -> Settling<'a> {
        (**self).settle(key, earned, cost, least)
    }
}

/// The future that returns the tokens that a store grants.
pub type Taking<'a> = Pin<Box<dyn Future<Output = Result<Taken, BoxError>> + Send + 'a>>;

/// A store for the buckets of a rate limit that many processes share.
///
/// A store has one bucket per key. It atomically applies [`take`](crate::rate::take) to a bucket, with the time of its
/// own clock. A missing key means a full bucket.
pub trait RateStore: Send + Sync + 'static {
    /// Applies [`take`](crate::rate::take) to the bucket of `key`. Returns the tokens granted, and the time of the last
    /// grant.
    ///
    /// # Errors
    ///
    /// After any error, the process uses its own limit until the store answers. It asks again after 0.1 s, and then
    /// after twice as long each time, up to a second.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the tokens may already have been taken.
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a>;
}

impl<S: RateStore + ?Sized> RateStore for Arc<S> {
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a> {
        (**self).take(key, rate, wanted)
    }
}

/// An in-memory store for this process, for tests. Clones share their buckets.
///
/// The store uses tokio's clock, which a test can pause.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    budgets: Arc<Mutex<Buckets<rule::State>>>,
    rates: Arc<Mutex<Buckets<rate_rule::State>>>,
    start: Instant,
}

/// The state of each key, with the time from which its bucket is full.
type Buckets<S> = HashMap<String, (S, u64)>;

impl MemoryStore {
    /// Creates a store without keys.
    pub fn new() -> Self {
        Self { budgets: Arc::default(), rates: Arc::default(), start: Instant::now() }
    }

    /// Removes all keys, like a restart of a store without persistence. Each bucket is then full again.
    pub fn clear(&self) {
        lock(&self.budgets).clear();
        lock(&self.rates).clear();
    }

    /// Returns the number of keys whose bucket may not be full.
    pub fn len(&self) -> usize {
        lock(&self.budgets).len() + lock(&self.rates).len()
    }

    /// Returns `true` if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn now(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

fn lock<T>(buckets: &Mutex<T>) -> MutexGuard<'_, T> {
    buckets.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Applies a rule to the bucket of `key`, whose state expires after `time_to_live` milliseconds.
fn apply<S: Copy, T>(
    buckets: &mut Buckets<S>,
    key: &str,
    now: u64,
    time_to_live: u64,
    rule: impl FnOnce(Option<S>) -> (S, T),
) -> T {
    if let Some((state, full_at)) = buckets.get_mut(key) {
        let (next, answer) = rule(Some(*state).filter(|_| now < *full_at));
        (*state, *full_at) = (next, now + time_to_live);
        return answer;
    }
    buckets.retain(|_, (_, full_at)| now < *full_at);
    let (next, answer) = rule(None);
    buckets.insert(key.to_owned(), (next, now + time_to_live));
    answer
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl BudgetStore for MemoryStore {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64, least: u64) -> Settling<'a> {
        Box::pin(async move {
            let (now, mut buckets) = (self.now(), lock(&self.budgets));
            let settle = |state| rule::settle(state, now, earned, cost, least);
            Ok(apply(&mut buckets, key, now, rule::TIME_TO_LIVE, settle))
        })
    }
}

impl RateStore for MemoryStore {
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a> {
        Box::pin(async move {
            let (now, mut buckets) = (self.now(), lock(&self.rates));
            Ok(apply(&mut buckets, key, now, rate.time_to_live(), |state| take(state, now, rate, wanted)))
        })
    }
}
