//! The buckets of one budget: a single one, or one for each destination.

use std::sync::Arc;
use std::time::Duration;

use super::bucket::Take;
use super::destination_bucket::DestinationBucket;
use super::destinations::Destinations;

/// All buckets under one rule.
pub(crate) enum Store<B: DestinationBucket> {
    One(Arc<B>),
    Each(Destinations<B>),
}

impl<B: DestinationBucket> Store<B> {
    /// Creates full buckets for at most that many destinations, or one for all.
    pub(crate) fn new(max_destinations: Option<usize>, rule: B::Rule) -> Self {
        match max_destinations {
            None => Self::One(Arc::new(B::create(rule, None))),
            Some(most) => Self::Each(Destinations::new(most, rule)),
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

    /// Returns `true` if a success of any destination would have no effect.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        match self {
            Self::One(bucket) => bucket.is_full(),
            Self::Each(destinations) => destinations.are_full(),
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
