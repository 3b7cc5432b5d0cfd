//! The configuration of each contender: the best one that does the same job.
//!
//! The job: up to two retries after a 5xx status or an error, with exponential backoff, jitter and
//! a budget.

mod by_hand;
#[cfg(feature = "bodies")]
mod least;
#[cfg(feature = "guards")]
pub(crate) mod least_guard;
#[cfg(feature = "guards")]
pub(crate) mod least_guards;
#[cfg(feature = "peers")]
mod others;

use std::time::Duration;

use reattempt::{Retry, RetryPolicy};

pub(crate) use by_hand::{Bucket, ByHand, Pause, by_hand, by_hand_once, by_hand_with_bucket};
#[cfg(feature = "bodies")]
pub(crate) use least::{KeepsLeast, Least, ROOM};
#[cfg(feature = "peers")]
pub(crate) use others::{
    middleware_bare, reqwest_retry, reqwest_retry_usual, resilience, resilience_with, seatbelt_retry,
};

pub(crate) const BASE: Duration = Duration::from_millis(100);
pub(crate) const CAP: Duration = Duration::from_secs(5);

/// Ours, with every default.
pub(crate) fn ours<S: Clone>(inner: S) -> Retry<S> {
    Retry::new(RetryPolicy::http(), inner)
}
