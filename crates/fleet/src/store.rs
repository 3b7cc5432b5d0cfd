//! The contract of a store, and an in-memory store.

use std::collections::HashMap;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::time::Instant;

use crate::rule::{self, State};

/// An error of a store.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The future of a store's answer.
pub type Settling<'a> = Pin<Box<dyn Future<Output = Result<bool, BoxError>> + Send + 'a>>;

/// A store for buckets that many processes share.
///
/// It has one bucket per key, and applies [`rule::settle`] to it in one atomic step, on its own clock. A key that it
/// does not have stands for a full bucket.
pub trait BudgetStore: Send + Sync + 'static {
    /// Applies [`rule::settle`] to the bucket of `key`. Returns its answer.
    ///
    /// `earned` and `cost` are millionths of a token. A message that may have arrived is never sent again. The budget
    /// sets time limits, so a store needs none.
    ///
    /// # Errors
    ///
    /// Any error counts as a missing answer: the process decides alone, and asks again after a second.
    ///
    /// # Cancel safety
    ///
    /// A future that is dropped may have taken the tokens.
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64) -> Settling<'a>;
}

impl<S: BudgetStore + ?Sized> BudgetStore for Arc<S> {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64) -> Settling<'a> {
        (**self).settle(key, earned, cost)
    }
}

/// An in-memory store for this process, for tests. Clones share their buckets.
///
/// It uses tokio's clock, which a test can pause.
#[derive(Debug, Clone)]
pub struct MemoryStore {
    buckets: Arc<Mutex<HashMap<String, State>>>,
    start: Instant,
}

impl MemoryStore {
    /// Creates a store without keys.
    pub fn new() -> Self {
        Self { buckets: Arc::default(), start: Instant::now() }
    }

    /// Removes all keys, like a restart of a store without persistence. Each bucket is full again.
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
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl BudgetStore for MemoryStore {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64) -> Settling<'a> {
        Box::pin(async move {
            let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
            if !buckets.contains_key(key) {
                buckets.retain(|_, state| now.saturating_sub(state.at) < rule::TIME_TO_LIVE);
            }
            let (next, answer) = rule::settle(buckets.get(key).copied(), now, earned, cost);
            buckets.insert(key.to_owned(), next);
            Ok(answer)
        })
    }
}
