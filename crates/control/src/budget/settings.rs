//! Budget settings, in whole millionths of a token.
//!
//! Input: the user's floats and counts. Output: integers within their ranges.

use std::time::Duration;

use reattempt_core::{FailureKind, Recommended, Warning};

use super::bucket::{MOST_TOKENS, TOKEN, TokenRule};
use super::cautious::{self, Caution};
use crate::destination_table::DEFAULT_DESTINATIONS;
use crate::millionths::{millionths, units};

/// The share of normal traffic that may be retried, for budgets created from a traffic rate.
pub(super) const RATIO: f64 = 0.1;
/// The default trickle of a ratio budget: one retry per 100 seconds. With 0.1 tokens per second, many clients sending
/// one call per second each would keep a server down.
const TRICKLE: u64 = TOKEN / 100;

/// The default of a cautious budget.
const CAUTION: Caution =
    Caution { capacity: 10 * TOKEN, credit: TOKEN / 5, debt: cautious::MOST_DEBT_TOKENS as u64 * TOKEN };
const CAUTIOUS_LEAST: u64 = cautious::LEAST_TOKENS as u64 * TOKEN;
const CAUTIOUS_MOST: u64 = cautious::MOST_TOKENS as u64 * TOKEN;

/// The settings that a budget was built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// `None` if all destinations share one bucket.
    pub(crate) max_destinations: Option<usize>,
    /// `true` if a capacity was set on a kind that has none.
    pub(super) unused_capacity: bool,
    /// `true` if a trickle was set on a kind that has none.
    pub(super) unused_trickle: bool,
    /// `true` if an overdraft was set on a kind that has none.
    pub(super) unused_overdraft: bool,
}

/// The kind of a budget, with its bucket settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every retry is granted.
    Unlimited,
    Cautious(Caution),
    /// Each retry costs one token. Each success adds the ratio, even if its call was retried.
    Tokens(TokenRule),
    Quota(TokenRule, Costs),
}

/// The settings of a bucket.
#[derive(Clone, Copy)]
pub(super) enum BucketRule {
    Tokens(TokenRule, Costs),
    Cautious(Caution),
}

/// The cost of a retry in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Costs {
    pub(crate) retry: u32,
    pub(crate) after_timeout: u32,
}

impl Costs {
    pub(crate) const ONE: Self = Self { retry: 1, after_timeout: 1 };
    pub(crate) const AWS: Self = Self { retry: 5, after_timeout: 10 };
    /// The capacity of a bucket under a quota.
    const CAPACITY: u32 = 500;

    pub(super) fn new(retry: u32, after_timeout: u32) -> Self {
        let legal = |cost: u32| cost.clamp(1, Self::CAPACITY);
        Self { retry: legal(retry), after_timeout: legal(after_timeout) }
    }

    /// Returns the cost of a retry after a failure.
    #[inline]
    pub(super) fn after(self, failure: FailureKind) -> u32 {
        if failure == FailureKind::Timeout { self.after_timeout } else { self.retry }
    }

    fn dearest(self) -> u32 {
        self.retry.max(self.after_timeout)
    }
}

impl BucketRule {
    /// Returns the capacity in millionths.
    pub(super) fn capacity(self) -> u64 {
        match self {
            Self::Tokens(rule, _) => rule.capacity,
            Self::Cautious(caution) => caution.capacity,
        }
    }
}

impl Kind {
    /// Returns the settings of each bucket, or `None` if there are no buckets.
    pub(super) fn bucket_rule(self) -> Option<BucketRule> {
        match self {
            Self::Unlimited => None,
            Self::Cautious(caution) => Some(BucketRule::Cautious(caution)),
            Self::Tokens(rule) => Some(BucketRule::Tokens(rule, Costs::ONE)),
            Self::Quota(rule, costs) => Some(BucketRule::Tokens(rule, costs)),
        }
    }

    /// Returns the settings of the buckets whose doubt limits free replacements, unless the kind has doubt or limits
    /// nothing.
    pub(super) fn brake_rule(self) -> Option<BucketRule> {
        match self {
            Self::Unlimited | Self::Cautious(_) => None,
            Self::Tokens(_) | Self::Quota(..) => Some(BucketRule::Cautious(CAUTION)),
        }
    }

    /// Returns the most retries of one call while no call succeeds, starting with full buckets.
    pub(super) fn most_retries(self, within: Duration) -> Option<u32> {
        let (rule, costs) = match self {
            Self::Unlimited => return None,
            Self::Cautious(Caution { capacity, .. }) => return Some(cautious::most_retries(capacity)),
            Self::Tokens(rule) => (rule, Costs::ONE),
            Self::Quota(rule, costs) => (rule, costs),
        };
        let earned = rule.refill.saturating_mul(within.as_secs());
        let retries = rule.capacity.saturating_add(earned) / (u64::from(costs.retry) * TOKEN);
        u32::try_from(retries).ok()
    }

    /// Returns a warning if the share or the burst of retries is unusual. No range is recommended for a quota.
    fn validate(&self) -> Option<Warning> {
        match self {
            Self::Tokens(rule) if rule.ratio == 0 => {
                Recommended::burst("burst", tokens(rule.capacity), tokens(rule.refill))
            }
            Self::Tokens(TokenRule { ratio, .. }) | Self::Cautious(Caution { credit: ratio, .. }) => {
                Recommended::BUDGET.number("ratio", tokens(*ratio))
            }
            Self::Unlimited | Self::Quota(..) => None,
        }
    }
}

impl Settings {
    pub(crate) const UNLIMITED: Self = Self { max_destinations: None, ..Self::of(Kind::Unlimited) };

    pub(crate) const CAUTIOUS: Self = Self::of(Kind::Cautious(CAUTION));

    const fn of(kind: Kind) -> Self {
        Self {
            kind,
            max_destinations: Some(DEFAULT_DESTINATIONS),
            unused_capacity: false,
            unused_trickle: false,
            unused_overdraft: false,
        }
    }

    /// Returns a warning for each setting that is unusual, or has no effect on this kind of budget.
    pub(crate) fn validate(&self) -> Vec<Warning> {
        let unused = [
            ("capacity", self.unused_capacity),
            ("min_per_second", self.unused_trickle),
            ("overdraft", self.unused_overdraft),
        ];
        let unused = unused.into_iter().filter(|(_, is_set)| *is_set);
        let unused = unused.map(|(field, _)| Warning::new(field, "set", "unset, because this kind of budget has none"));
        self.kind.validate().into_iter().chain(unused).collect()
    }

    /// Returns the settings of a ratio budget. `ratio` is in millionths.
    pub(crate) fn of_ratio(ratio: u64) -> Self {
        let capacity = 10 * TOKEN;
        Self::of(Kind::Tokens(TokenRule { capacity, ratio, refill: TRICKLE, refunds: false }))
    }

    pub(crate) fn rate(per_second: f64, burst: f64) -> Self {
        let refill = millionths(per_second, 0.000_001, 1_000_000.0);
        Self::of(Kind::Tokens(TokenRule { capacity: capacity(burst), ratio: 0, refill, refunds: false }))
    }

    pub(crate) fn of_quota(costs: Costs) -> Self {
        let capacity = u64::from(Costs::CAPACITY) * TOKEN;
        Self::of(Kind::Quota(TokenRule { capacity, ratio: TOKEN, refill: 0, refunds: true }, costs))
    }

    pub(crate) fn capacity(mut self, tokens: f64) -> Self {
        let capacity = capacity(tokens);
        match &mut self.kind {
            Kind::Unlimited => self.unused_capacity = true,
            Kind::Cautious(caution) => caution.capacity = capacity.clamp(CAUTIOUS_LEAST, CAUTIOUS_MOST),
            Kind::Tokens(rule) => rule.capacity = capacity,
            // With a smaller capacity, retries after timeouts, or even all retries, would never be allowed.
            Kind::Quota(rule, costs) => rule.capacity = capacity.max(u64::from(costs.dearest()) * TOKEN),
        }
        self
    }

    pub(crate) fn overdraft(mut self, tokens: u32) -> Self {
        match &mut self.kind {
            Kind::Cautious(caution) => {
                caution.debt = u64::from(tokens.min(cautious::MOST_DEBT_TOKENS)) * TOKEN;
            }
            Kind::Unlimited | Kind::Tokens(_) | Kind::Quota(..) => self.unused_overdraft = true,
        }
        self
    }

    pub(crate) fn min_per_second(mut self, per_second: f64) -> Self {
        let refill = millionths(per_second, 0.0, 1_000_000.0);
        match &mut self.kind {
            Kind::Unlimited | Kind::Cautious(_) => self.unused_trickle = true,
            // Here the trickle would replace the rate, and a trickle of 0 would never refill the bucket.
            Kind::Tokens(rule) if rule.ratio == 0 => self.unused_trickle = true,
            Kind::Tokens(rule) | Kind::Quota(rule, _) => rule.refill = refill,
        }
        self
    }
}

/// Converts millionths to tokens.
pub(crate) fn tokens(millionths: u64) -> f64 {
    units(millionths.cast_signed())
}

fn capacity(tokens: f64) -> u64 {
    millionths(tokens, 1.0, f64::from(MOST_TOKENS))
}
