//! The traits for stores, and an in-memory store.

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::rate_rule::{Rate, take};
use crate::rule::{self, State};

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
    /// `earned` and `cost` are millionths of a token. A message that may have arrived is never sent again. The budget
    /// sets time limits, so a store needs none.
    ///
    /// # Errors
    ///
    /// An error is treated as a missing answer: the process decides alone, and asks again after a second.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the tokens may already have been taken.
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64) -> Settling<'a>;
}

impl<S: BudgetStore + ?Sized> BudgetStore for Arc<S> {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64) -> Settling<'a> {
        (**self).settle(key, earned, cost)
    }
}

/// The future that returns the tokens that a store grants.
pub type Taking<'a> = Pin<Box<dyn Future<Output = Result<u32, BoxError>> + Send + 'a>>;

/// A store for the buckets of a rate limit that many processes share.
///
/// A store has one bucket per key. It atomically applies [`take`](crate::rate::take) to a bucket, with the time of its
/// own clock. A missing key means a full bucket.
pub trait RateStore: Send + Sync + 'static {
    /// Applies [`take`](crate::rate::take) to the bucket of `key`. Returns the tokens granted.
    ///
    /// # Errors
    ///
    /// After any error, the process uses its own limit for a second.
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
    /// Each state, with the time from which its bucket is full.
    buckets: Arc<Mutex<HashMap<String, (State, u64)>>>,
    start: Instant,
}

impl MemoryStore {
    /// Creates a store without keys.
    pub fn new() -> Self {
        Self { buckets: Arc::default(), start: Instant::now() }
    }

    /// Removes all keys, like a restart of a store without persistence. Each bucket is then full again.
    pub fn clear(&self) {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Returns the number of keys whose bucket may not be full.
    pub fn len(&self) -> usize {
        self.buckets.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns `true` if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Applies a rule to the bucket of `key`, whose state expires after `time_to_live` milliseconds.
    fn apply<T>(&self, key: &str, time_to_live: u64, rule: impl FnOnce(Option<State>, u64) -> (State, T)) -> T {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((state, full_at)) = buckets.get_mut(key) {
            let (next, answer) = rule(Some(*state).filter(|_| now < *full_at), now);
            (*state, *full_at) = (next, now + time_to_live);
            return answer;
        }
        buckets.retain(|_, (_, full_at)| now < *full_at);
        let (next, answer) = rule(None, now);
        buckets.insert(key.to_owned(), (next, now + time_to_live));
        answer
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl BudgetStore for MemoryStore {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64) -> Settling<'a> {
        Box::pin(
            async move { Ok(self.apply(key, rule::TIME_TO_LIVE, |state, now| rule::settle(state, now, earned, cost))) },
        )
    }
}

impl RateStore for MemoryStore {
    fn take<'a>(&'a self, key: &'a str, rate: Rate, wanted: u32) -> Taking<'a> {
        Box::pin(async move { Ok(self.apply(key, rate.time_to_live(), |state, now| take(state, now, rate, wanted))) })
    }
}
