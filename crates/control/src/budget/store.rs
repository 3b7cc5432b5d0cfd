//! The interface between a budget and its buckets, and the stores without a table.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{FailureKind, Permit};

use super::bucket::Take;
use super::cautious::Event;
use super::destination_bucket::{Balance, DestinationBucket};

/// A budget's buckets. The type behind the trait object determines their kind, and whether destinations have their own.
pub(super) trait Store: Send + Sync {
    /// Records `event` for `destination`. Returns a permit if the event requests tokens and the bucket grants them.
    fn record(&self, destination: &str, event: Event, now: Duration) -> Option<Permit>;

    /// Records a failure of `destination`. Returns a permit for its retry if the bucket grants it.
    fn retry(&self, destination: &str, failure: FailureKind, now: Duration) -> Option<Permit> {
        self.record(destination, Event::FailureAndRetry(failure), now)
    }

    /// Returns a permit for a hedge to `destination` if the bucket grants it.
    fn hedge(&self, destination: &str, failure: FailureKind, now: Duration) -> Option<Permit> {
        self.record(destination, Event::Hedge(failure), now)
    }

    /// Records a success of `destination`.
    fn on_success(&self, destination: &str);

    /// Returns the balance of the bucket that `destination` would use, in millionths; `None` without a limit.
    fn balance(&self, destination: &str) -> Option<u64>;

    /// Returns `true` if a success would not change the bucket that `destination` would use.
    fn is_full(&self, destination: &str) -> bool;

    /// Gives the bucket of `destination` a former one's balance, up to its capacity. Called before the store is used.
    fn restore(&self, destination: &str, former: Balance);

    /// Gives the shared bucket a former one's balance.
    fn restore_shared(&self, former: Balance);

    /// Returns the destinations' buckets, unsorted, and the shared bucket.
    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance);
}

/// No buckets: every retry is granted.
pub(super) struct Unlimited;

impl Store for Unlimited {
    fn record(&self, _: &str, _: Event, _: Duration) -> Option<Permit> {
        Some(Permit::free())
    }

    fn on_success(&self, _: &str) {}

    fn balance(&self, _: &str) -> Option<u64> {
        None
    }

    fn is_full(&self, _: &str) -> bool {
        true
    }

    fn restore(&self, _: &str, _: Balance) {}

    fn restore_shared(&self, _: Balance) {}

    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance) {
        (Vec::new(), Balance { tokens: u64::MAX, doubt: 0, at: 0 })
    }
}

/// One bucket for all destinations.
pub(super) struct Shared<B: DestinationBucket> {
    pub(super) bucket: Arc<B>,
    pub(super) rule: B::Rule,
}

impl<B: DestinationBucket> Store for Shared<B> {
    #[inline(always)]
    fn record(&self, _: &str, event: Event, now: Duration) -> Option<Permit> {
        record_in(&self.bucket, event, B::cost(self.rule, event), now)
    }

    fn on_success(&self, _: &str) {
        self.bucket.credit();
    }

    fn balance(&self, _: &str) -> Option<u64> {
        Some(Balance::of(&*self.bucket, self.rule).tokens)
    }

    fn is_full(&self, _: &str) -> bool {
        Balance::of(&*self.bucket, self.rule).is_full(B::capacity(self.rule))
    }

    fn restore(&self, _: &str, former: Balance) {
        self.bucket.restore(former);
    }

    fn restore_shared(&self, former: Balance) {
        self.bucket.restore(former);
    }

    fn balances(&self) -> (Vec<(Arc<str>, Balance)>, Balance) {
        (Vec::new(), Balance::of(&*self.bucket, self.rule))
    }
}

/// Records an event in a bucket that is never retired.
#[inline]
fn record_in<B: DestinationBucket>(bucket: &Arc<B>, event: Event, cost: u32, now: Duration) -> Option<Permit> {
    let taken = bucket.record(event, cost, now) == Take::Taken;
    taken.then(|| Permit::new(Arc::<B>::clone(bucket), cost))
}
