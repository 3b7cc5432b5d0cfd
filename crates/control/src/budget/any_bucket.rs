//! A bucket of any kind, with the costs of its retries.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{Permit, PermitIssuer};

use super::bucket::{Bucket, Take};
use super::cautious::{CautiousBucket, Event, NOT_RETURNED as OVERDRAWN};
use super::not_full::BucketCount;
use super::settings::{BucketRule, Costs};
use crate::destination_table::Entry;

pub(super) enum AnyBucket {
    Tokens(Bucket, Costs),
    Cautious(CautiousBucket),
}

/// A bucket's tokens in millionths, and its doubt, which blocks retries even if tokens are left.
#[derive(Clone, Copy)]
pub(super) struct Balance {
    /// Negative for a debt.
    pub(super) tokens: i64,
    pub(super) doubt: u64,
    /// The time to which the balance refers, in the unit of this kind of bucket.
    pub(super) at: u64,
}

impl Balance {
    pub(super) fn is_full(self, capacity: u64) -> bool {
        self.tokens >= capacity.cast_signed() && self.doubt == 0
    }
}

impl AnyBucket {
    /// Creates a full bucket. It is counted while a success would change it.
    pub(super) fn new(rule: BucketRule, counted: BucketCount) -> Self {
        match rule {
            BucketRule::Tokens(rule, costs) => Self::Tokens(Bucket::new(rule, counted), costs),
            BucketRule::Cautious(caution) => Self::Cautious(CautiousBucket::new(caution, counted)),
        }
    }

    /// Records an event. Returns a permit if the event requests tokens and the bucket grants them. Returns `None` once
    /// retired.
    #[inline]
    pub(super) fn record(self: &Arc<Self>, event: Event, now: Duration) -> Option<Option<Permit>> {
        let (take, cost) = match &**self {
            Self::Tokens(bucket, costs) => {
                let cost = costs.after(event.kind);
                (bucket.take(cost, now), cost)
            }
            Self::Cautious(bucket) => (bucket.record(event, now), event.cost()),
        };
        match take {
            Take::Taken => Some(Some(Permit::new(Arc::<Self>::clone(self), cost))),
            Take::Overdrawn => Some(Some(Permit::new(Arc::<Self>::clone(self), OVERDRAWN))),
            Take::Refused => Some(None),
            Take::Retired => None,
        }
    }

    /// Inlined fast path: takes the tokens that `event` requests. Returns `None` in all but the usual case.
    #[inline(always)]
    pub(super) fn try_take(self: &Arc<Self>, event: Event, now: Duration) -> Option<Permit> {
        let Self::Tokens(bucket, costs) = &**self else { return None };
        let cost = costs.after(event.kind);
        let taken = bucket.try_take(cost, now) == Some(Take::Taken);
        taken.then(|| Permit::new(Arc::<Self>::clone(self), cost))
    }

    /// Records a success.
    #[inline]
    pub(super) fn credit(&self) {
        match self {
            Self::Tokens(bucket, _) => bucket.credit(),
            Self::Cautious(bucket) => bucket.credit(),
        };
    }

    /// Returns `true` if the doubt lets a call move to another endpoint without a token.
    pub(super) fn allows_moves(&self) -> bool {
        match self {
            Self::Tokens(..) => true,
            Self::Cautious(bucket) => bucket.allows_moves(),
        }
    }

    /// Returns the balance, or `None` once retired.
    pub(super) fn balance(&self) -> Option<Balance> {
        Some(match self {
            Self::Tokens(bucket, _) => {
                Balance { tokens: bucket.balance()?.cast_signed(), doubt: 0, at: bucket.refilled_until() }
            }
            Self::Cautious(bucket) => {
                Balance { tokens: bucket.balance()?, doubt: bucket.doubt(), at: bucket.last_failure() }
            }
        })
    }

    /// Adopts a former bucket's balance, up to the capacity. Called before the bucket is used.
    pub(super) fn restore(&self, former: Balance) {
        match self {
            Self::Tokens(bucket, _) => bucket.restore(former.tokens.max(0).cast_unsigned(), former.at),
            Self::Cautious(bucket) => bucket.restore(former.tokens, former.doubt, former.at),
        }
    }

    /// Marks the bucket as full if it has filled up over time by `now`.
    pub(super) fn catch_up(&self, now: Duration) {
        match self {
            Self::Tokens(bucket, _) => bucket.catch_up(now),
            Self::Cautious(bucket) => bucket.catch_up(now),
        }
    }
}

impl Entry for AnyBucket {
    /// Retires the bucket. The destination's next bucket starts full, so the tokens in use may be granted again.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        match self {
            Self::Tokens(bucket, _) => bucket.retire(now, forgets, is_idle),
            Self::Cautious(bucket) => bucket.retire(now, forgets, is_idle),
        }
    }
}

impl PermitIssuer for AnyBucket {
    #[inline]
    fn give_back(&self, cost: u32) {
        match self {
            Self::Tokens(bucket, _) => bucket.give_back(cost),
            Self::Cautious(bucket) => bucket.give_back(cost),
        }
    }

    #[inline]
    fn on_retry_end(&self, cost: u32, succeeded: bool) {
        match self {
            Self::Tokens(bucket, _) => bucket.on_retry_end(cost, succeeded),
            Self::Cautious(bucket) => bucket.on_retry_end(cost, succeeded),
        }
    }
}
