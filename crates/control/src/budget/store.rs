//! The buckets of one budget: a single one, or one for each destination.

use std::sync::Arc;
use std::time::Duration;

use super::bucket::Take;
use super::destination_bucket::DestinationBucket;
use super::destinations::Destinations;
use super::not_full::{NotFull, Slot};

/// All buckets under one rule.
pub(crate) enum Store<B: DestinationBucket> {
    One(Arc<B>),
    Each(Destinations<B>),
}

impl<B: DestinationBucket> Store<B> {
    /// Creates full buckets for at most that many destinations, or one for all. They are counted in `not_full`.
    pub(crate) fn new(
        max_destinations: Option<usize>,
        rule: B::Rule,
        not_full: Arc<NotFull>,
    ) -> Self {
        match max_destinations {
            None => Self::One(Arc::new(B::create(rule, (not_full, Slot::OTHERS)))),
            Some(most) => Self::Each(Destinations::new(most, rule, not_full)),
        }
    }

    /// Takes from the bucket of `destination`, and returns it if the tokens were there.
    #[inline]
    pub(crate) fn take(
        &self,
        destination: &str,
        now: Duration,
        take: impl Fn(&B) -> Take,
    ) -> Option<Arc<B>> {
        match self {
            Self::One(bucket) => (take(bucket) == Take::Taken).then(|| Arc::clone(bucket)),
            Self::Each(destinations) => destinations.take(destination, now, take),
        }
    }

    /// Records a success of `destination`.
    #[inline]
    pub(crate) fn on_success(&self, destination: &str) {
        match self {
            Self::One(bucket) => drop(bucket.credit()),
            Self::Each(destinations) => destinations.on_success(destination),
        }
    }

    /// Returns the balance that `destination` would draw on, in millionths.
    pub(crate) fn balance(&self, destination: &str) -> u64 {
        match self {
            Self::One(bucket) => bucket.balance().unwrap_or_default(),
            Self::Each(destinations) => destinations.balance(destination),
        }
    }

    /// Returns the table of destinations, if there is one.
    pub(crate) fn destinations(&self) -> Option<&Destinations<B>> {
        match self {
            Self::One(_) => None,
            Self::Each(destinations) => Some(destinations),
        }
    }
}
