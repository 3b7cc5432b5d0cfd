//! Budget settings, in whole millionths of a token.
//!
//! Input: the user's floats and counts. Output: checked integers, or an error that names the field.

use std::ops::RangeInclusive;

use reattempt_core::{ConfigError, Recommended, Warning};

use super::bucket::{MOST_TOKENS, Rule, TOKEN};
use super::cautious::{self, Caution};
use crate::destination_table::{DEFAULT_DESTINATIONS, clamped_destinations};

/// The share of normal traffic that may be retried, for budgets built from a traffic rate.
const RATIO: f64 = 0.1;
/// The default trickle of a ratio budget: one retry per 100 seconds. With a tenth of a token, many clients that each
/// send one call per second would keep a server down.
const TRICKLE: u64 = TOKEN / 100;

const CAUTIOUS_CAPACITY: RangeInclusive<u64> =
    cautious::LEAST_TOKENS as u64 * TOKEN..=cautious::MOST_TOKENS as u64 * TOKEN;

const UNSET_IF_UNLIMITED: &str = "left unset on an unlimited budget";

/// The settings from which a budget was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    pub(crate) kind: Kind,
    /// `None` if all destinations share one bucket.
    pub(crate) max_destinations: Option<usize>,
}

/// The kind of a budget, with its bucket settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Every retry is granted.
    Unlimited,
    Cautious(Caution),
    /// Each retry costs one token. Each success adds the ratio, even if its call was retried.
    Tokens(Rule),
    Quota(Rule, Costs),
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

    fn new(retry: u32, after_timeout: u32) -> Result<Self, ConfigError> {
        for (field, cost) in [("retry", retry), ("after_timeout", after_timeout)] {
            if !(1..=Self::CAPACITY).contains(&cost) {
                return Err(ConfigError::new(field, cost, "a number from 1 to 500"));
            }
        }
        Ok(Self { retry, after_timeout })
    }

    fn dearest(self) -> u32 {
        self.retry.max(self.after_timeout)
    }
}

impl Kind {
    /// Returns a warning if the share or the burst of retries is unusual. No range is recommended for a quota.
    pub(crate) fn validate(&self) -> Option<Warning> {
        match self {
            Self::Tokens(rule) if rule.ratio == 0 => {
                Recommended::burst("burst", tokens(rule.capacity), tokens(rule.refill))
            }
            Self::Tokens(Rule { ratio, .. }) | Self::Cautious(Caution { credit: ratio, .. }) => {
                Recommended::BUDGET.number("ratio", tokens(*ratio))
            }
            Self::Unlimited | Self::Quota(..) => None,
        }
    }
}

impl Settings {
    pub(crate) const UNLIMITED: Self = Self { kind: Kind::Unlimited, max_destinations: None };

    pub(crate) const CAUTIOUS: Self = Self::of(Kind::Cautious(Caution { capacity: 10 * TOKEN, credit: TOKEN / 5 }));

    const fn of(kind: Kind) -> Self {
        Self { kind, max_destinations: Some(DEFAULT_DESTINATIONS) }
    }

    /// Returns the settings of a ratio budget. `ratio` is in millionths.
    fn of_ratio(ratio: u64) -> Self {
        let capacity = 10 * TOKEN;
        Self::of(Kind::Tokens(Rule { capacity, ratio, refill: TRICKLE, refunds: false }))
    }

    pub(crate) fn ratio(ratio: f64) -> Result<Self, ConfigError> {
        let allowed = (0.000_001, 1.0, "a number from 0.000001 to 1");
        millionths("ratio", ratio, allowed).map(Self::of_ratio)
    }

    pub(crate) fn percent(percent: u32) -> Self {
        Self::of_ratio(u64::from(percent.clamp(1, 100)) * TOKEN / 100)
    }

    pub(crate) fn rate(per_second: f64, burst: f64) -> Result<Self, ConfigError> {
        let allowed = (0.000_001, 1_000_000.0, "a number from 0.000001 to 1000000");
        let refill = millionths("per_second", per_second, allowed)?;
        let capacity = capacity("burst", burst)?;
        Ok(Self::of(Kind::Tokens(Rule { capacity, ratio: 0, refill, refunds: false })))
    }

    pub(crate) fn quota(retry: u32, after_timeout: u32) -> Result<Self, ConfigError> {
        Costs::new(retry, after_timeout).map(Self::of_quota)
    }

    pub(crate) fn of_quota(costs: Costs) -> Self {
        let capacity = u64::from(Costs::CAPACITY) * TOKEN;
        Self::of(Kind::Quota(Rule { capacity, ratio: TOKEN, refill: 0, refunds: true }, costs))
    }

    pub(crate) fn ratio_for(normal_rps: f64) -> Result<Self, ConfigError> {
        let normal_rps = normal(normal_rps)?;
        Self::ratio(RATIO)?.capacity((2.0 * RATIO * normal_rps).max(1.0))
    }

    pub(crate) fn rate_for(normal_rps: f64) -> Result<Self, ConfigError> {
        let rate = RATIO * normal(normal_rps)?;
        Self::rate(rate, (2.0 * rate).max(1.0))
    }

    pub(crate) fn capacity(mut self, tokens: f64) -> Result<Self, ConfigError> {
        let capacity = capacity("capacity", tokens)?;
        match &mut self.kind {
            Kind::Unlimited => {
                return Err(ConfigError::new("capacity", tokens, UNSET_IF_UNLIMITED));
            }
            Kind::Cautious(_) if !CAUTIOUS_CAPACITY.contains(&capacity) => {
                return Err(ConfigError::new("capacity", tokens, "a number from 2 to 1000"));
            }
            Kind::Quota(_, costs) if capacity < u64::from(costs.dearest()) * TOKEN => {
                // The bucket could never pay for a retry, or for one after a timeout.
                return Err(ConfigError::new("capacity", tokens, "at least what a retry costs"));
            }
            Kind::Cautious(caution) => caution.capacity = capacity,
            Kind::Tokens(rule) | Kind::Quota(rule, _) => rule.capacity = capacity,
        }
        Ok(self)
    }

    pub(crate) fn min_per_second(mut self, per_second: f64) -> Result<Self, ConfigError> {
        let allowed = (0.0, 1_000_000.0, "a number from 0 to 1000000");
        let refill = millionths("min_per_second", per_second, allowed)?;
        let unset = match &mut self.kind {
            Kind::Unlimited => UNSET_IF_UNLIMITED,
            Kind::Cautious(_) => "left unset on a cautious budget",
            // A trickle would replace the rate, and a trickle of 0 would leave a bucket that never refills.
            Kind::Tokens(rule) if rule.ratio == 0 => "left unset on a rate budget",
            Kind::Tokens(rule) | Kind::Quota(rule, _) => {
                rule.refill = refill;
                return Ok(self);
            }
        };
        Err(ConfigError::new("min_per_second", per_second, unset))
    }

    pub(crate) fn max_destinations(self, most: usize) -> Self {
        Self { max_destinations: Some(clamped_destinations(most)), ..self }
    }

    pub(crate) fn shared(self, on: bool) -> Self {
        let most = self.max_destinations.unwrap_or(DEFAULT_DESTINATIONS);
        Self { max_destinations: (!on).then_some(most), ..self }
    }
}

/// Converts millionths to tokens.
pub(crate) fn tokens(millionths: u64) -> f64 {
    millionths as f64 / TOKEN as f64
}

fn capacity(field: &'static str, tokens: f64) -> Result<u64, ConfigError> {
    millionths(field, tokens, (1.0, f64::from(MOST_TOKENS), "a number from 1 to 10000000"))
}

/// Checks a client's normal rate. A tenth of it must be a valid rate as well.
fn normal(rps: f64) -> Result<f64, ConfigError> {
    let (least, most) = (0.000_01, 10_000_000.0);
    if (least..=most).contains(&rps) {
        return Ok(rps);
    }
    Err(ConfigError::new("normal_rps", rps, "a number from 0.00001 to 10000000"))
}

/// Returns `value` rounded to millionths if it lies within the range `(least, most, in words)`.
fn millionths(
    field: &'static str,
    value: f64,
    (least, most, allowed): (f64, f64, &'static str),
) -> Result<u64, ConfigError> {
    // NaN is outside every range.
    if !(least..=most).contains(&value) {
        return Err(ConfigError::new(field, value, allowed));
    }
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is within 0 and ten million")]
    let millionths = (value * TOKEN as f64).round() as u64;
    Ok(millionths)
}
