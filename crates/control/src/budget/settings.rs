//! The settings of a budget: floats and counts as a user writes them flow in, whole millionths of a
//! token flow out, or the error that names what was refused.

use reattempt_core::ConfigError;

use super::bucket::{MOST_TOKENS, Rule, TOKEN};

/// The default table holds the destinations of a busy gateway in some hundred kilobytes.
const MAX_DESTINATIONS: usize = 1024;
/// A newcomer copies the table: beyond this the copy would take milliseconds.
const MOST_DESTINATIONS: usize = 65_536;

/// The share of successful calls that may be retried by default.
const RATIO: f64 = 0.1;
/// What a second adds by default to the bucket of a ratio budget: one retry in a hundred seconds. A
/// tenth of a token a second would be a tenth of the load of a client of one call a second, and many
/// such clients together keep a server down.
const TRICKLE: u64 = TOKEN / 100;

/// What a budget was built from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settings {
    /// `None` when every retry is granted.
    pub(crate) rule: Option<Rule>,
    /// `None` when all destinations share one bucket.
    pub(crate) max_destinations: Option<usize>,
    /// `None` when each retry costs one token, and a success gives the ratio whatever its call paid.
    pub(crate) quota: Option<Quota>,
}

/// What a retry costs, in tokens, which the success of its call gives back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Quota {
    pub(crate) retry: u32,
    pub(crate) after_timeout: u32,
}

impl Quota {
    pub(crate) const AWS: Self = Self { retry: 5, after_timeout: 10 };
    /// What a full bucket holds.
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

impl Default for Settings {
    fn default() -> Self {
        Self::of(Rule { capacity: 10 * TOKEN, ratio: TOKEN / 10, refill: TRICKLE, refunds: false })
    }
}

impl Settings {
    pub(crate) const UNLIMITED: Self = Self { rule: None, max_destinations: None, quota: None };

    fn of(rule: Rule) -> Self {
        Self { rule: Some(rule), max_destinations: Some(MAX_DESTINATIONS), quota: None }
    }

    pub(crate) fn ratio(ratio: f64) -> Result<Self, ConfigError> {
        let allowed = (0.000_001, 1.0, "a number from 0.000001 to 1");
        let ratio = millionths("ratio", ratio, allowed)?;
        Ok(Self::default().with(|rule| rule.ratio = ratio))
    }

    pub(crate) fn rate(per_second: f64, burst: f64) -> Result<Self, ConfigError> {
        let allowed = (0.000_001, 1_000_000.0, "a number from 0.000001 to 1000000");
        let refill = millionths("per_second", per_second, allowed)?;
        let capacity = capacity("burst", burst)?;
        Ok(Self::of(Rule { capacity, ratio: 0, refill, refunds: false }))
    }

    pub(crate) fn quota(retry: u32, after_timeout: u32) -> Result<Self, ConfigError> {
        Quota::new(retry, after_timeout).map(Self::of_quota)
    }

    pub(crate) fn of_quota(quota: Quota) -> Self {
        let capacity = u64::from(Quota::CAPACITY) * TOKEN;
        let rule = Rule { capacity, ratio: TOKEN, refill: 0, refunds: true };
        Self { quota: Some(quota), ..Self::of(rule) }
    }

    pub(crate) fn ratio_for(normal_rps: f64) -> Result<Self, ConfigError> {
        let normal_rps = normal(normal_rps)?;
        Self::ratio(RATIO)?.capacity((2.0 * RATIO * normal_rps).max(1.0))
    }

    pub(crate) fn rate_for(normal_rps: f64) -> Result<Self, ConfigError> {
        let rate = 0.1 * normal(normal_rps)?;
        Self::rate(rate, (2.0 * rate).max(1.0))
    }

    pub(crate) fn capacity(self, tokens: f64) -> Result<Self, ConfigError> {
        let capacity = capacity("capacity", tokens)?;
        if self.quota.is_some_and(|quota| capacity < u64::from(quota.dearest()) * TOKEN) {
            // A retry after a timeout, or any at all, would never be allowed.
            return Err(ConfigError::new("capacity", tokens, "at least what a retry costs"));
        }
        Ok(self.limited("capacity", tokens)?.with(|rule| rule.capacity = capacity))
    }

    pub(crate) fn trickle(self, per_second: f64) -> Result<Self, ConfigError> {
        let allowed = (0.0, 1_000_000.0, "a number from 0 to 1000000");
        let refill = millionths("trickle", per_second, allowed)?;
        if self.rule.is_some_and(|rule| rule.ratio == 0) {
            // It would replace the rate, and at 0 leave nothing that refills the bucket.
            return Err(ConfigError::new("trickle", per_second, "left unset on a rate budget"));
        }
        Ok(self.limited("trickle", per_second)?.with(|rule| rule.refill = refill))
    }

    pub(crate) fn max_destinations(self, most: usize) -> Result<Self, ConfigError> {
        if !(1..=MOST_DESTINATIONS).contains(&most) {
            return Err(ConfigError::new("max_destinations", most, "a number from 1 to 65536"));
        }
        Ok(Self { max_destinations: Some(most), ..self })
    }

    pub(crate) fn shared(self) -> Self {
        Self { max_destinations: None, ..self }
    }

    /// Refuses to set a field of a bucket where there is no bucket.
    fn limited(self, field: &'static str, value: f64) -> Result<Self, ConfigError> {
        match self.rule {
            Some(_) => Ok(self),
            None => Err(ConfigError::new(field, value, "left unset on an unlimited budget")),
        }
    }

    fn with(mut self, change: impl FnOnce(&mut Rule)) -> Self {
        self.rule.as_mut().map(change);
        self
    }
}

/// A count of millionths as a number of tokens.
pub(crate) fn tokens(millionths: u64) -> f64 {
    millionths as f64 / TOKEN as f64
}

fn capacity(field: &'static str, tokens: f64) -> Result<u64, ConfigError> {
    millionths(field, tokens, (1.0, f64::from(MOST_TOKENS), "a number from 1 to 10000000"))
}

/// A client's normal rate, of which a tenth is still a legal rate.
fn normal(rps: f64) -> Result<f64, ConfigError> {
    let (least, most) = (0.000_01, 10_000_000.0);
    if (least..=most).contains(&rps) {
        return Ok(rps);
    }
    Err(ConfigError::new("normal_rps", rps, "a number from 0.00001 to 10000000"))
}

/// `value` to the nearest millionth, if it lies within the range `(least, most, in words)`.
fn millionths(
    field: &'static str,
    value: f64,
    (least, most, allowed): (f64, f64, &'static str),
) -> Result<u64, ConfigError> {
    // NaN lies in no range.
    if !(least..=most).contains(&value) {
        return Err(ConfigError::new(field, value, allowed));
    }
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is within 0 and ten million"
    )]
    let millionths = (value * TOKEN as f64).round() as u64;
    Ok(millionths)
}
