//! The growing interval of one call: `min(cap, base · factorⁿ)`, one step for each retry.

use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The interval that comes next, and how it grows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Growth {
    base: Duration,
    cap: Duration,
    factor: f64,
    /// `factorⁿ`; grown far enough it is infinite, shrunk far enough 0.
    multiple: f64,
}

impl Growth {
    /// Growth from `base`, which is not above `cap`, by `factor`, which is finite and above 0.
    pub(crate) fn new(base: Duration, factor: f64, cap: Duration) -> Self {
        Self { base, cap, factor, multiple: 1.0 }
    }

    /// The interval of this retry; the next call gives that of the next.
    pub(crate) fn step(&mut self) -> Duration {
        let interval = scale(self.base.as_nanos(), self.multiple);
        self.multiple *= self.factor;
        duration(interval).min(self.cap)
    }
}

/// `base · multiple`, in integers where the multiple is a whole number, as all those of a whole
/// factor are; else to the nearest unit.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer saturates, which the cap then takes care of; NaN, from 0 · ∞, is 0"
)]
fn scale(base: u128, multiple: f64) -> u128 {
    let whole = multiple as u128;
    if whole as f64 == multiple {
        base.saturating_mul(whole)
    } else {
        (base as f64 * multiple + 0.5) as u128
    }
}

/// A duration of this many nanoseconds, or the longest that there is.
fn duration(nanoseconds: u128) -> Duration {
    let rest = u32::try_from(nanoseconds % NANOS_PER_SECOND).unwrap_or(0);
    u64::try_from(nanoseconds / NANOS_PER_SECOND)
        .map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
}
