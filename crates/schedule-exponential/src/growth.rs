//! A call's growing interval, `min(cap, base · factorⁿ)`, with one step per retry.

use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// 52 days in nanoseconds. From this value to twice it, floats are exactly the integers.
const EXACT: f64 = (1_u64 << 52) as f64;

/// Returns `time`, or 1 ms if it is zero. A base of zero would never grow, and with a cap of zero all retries would be
/// sent immediately.
#[inline]
pub(crate) fn at_least_some(time: Duration) -> Duration {
    if time.is_zero() { Duration::from_millis(1) } else { time }
}

/// The next interval and its growth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Growth {
    pub(crate) base: Duration,
    /// The base as a float, for short intervals.
    base_nanos: f64,
    pub(crate) cap: Duration,
    pub(crate) factor: f64,
    /// `factorⁿ`, which may grow to infinity or shrink to 0.
    multiple: f64,
}

impl Growth {
    /// Creates the growth of an interval that starts at `base`. `factor` must be finite and above 0.
    #[inline]
    pub(crate) fn new(base: Duration, factor: f64, cap: Duration) -> Self {
        // Exact below 104 days, and without 128-bit arithmetic.
        let base_nanos = base.as_secs() as f64 * 1e9 + f64::from(base.subsec_nanos());
        Self { base, base_nanos, cap, factor, multiple: 1.0 }
    }

    /// Returns the interval for this retry, and advances to the next.
    pub(crate) fn step(&mut self) -> Duration {
        match self.short_step() {
            Some(interval) => interval,
            None => self.grow(long(self.base.as_nanos(), self.multiple)),
        }
    }

    /// Advances if the interval is short enough for a float to hold the product exactly.
    #[inline]
    pub(crate) fn short_step(&mut self) -> Option<Duration> {
        let nanos = self.base_nanos * self.multiple;
        (nanos < EXACT).then(|| self.grow(Duration::from_nanos(to_nearest(nanos))))
    }

    /// Applies the cap to this interval and grows the multiple.
    #[inline]
    fn grow(&mut self, interval: Duration) -> Duration {
        self.multiple *= self.factor;
        interval.min(self.cap)
    }
}

/// Rounds a number from 0 to [`EXACT`]. Adding `EXACT` leaves the rounded number in the float's low bits. Reading these
/// is much cheaper than a saturating cast.
#[inline]
fn to_nearest(number: f64) -> u64 {
    (number + EXACT).to_bits() - EXACT.to_bits()
}

/// Returns `base · multiple` of any length, exactly if the multiple is an integer, otherwise to the nearest nanosecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer saturates, which the cap then takes care of; NaN, from 0 · ∞, is 0"
)]
fn long(base: u128, multiple: f64) -> Duration {
    let whole = multiple as u128;
    let nanos =
        if whole as f64 == multiple { base.saturating_mul(whole) } else { (base as f64 * multiple + 0.5) as u128 };
    let rest = u32::try_from(nanos % NANOS_PER_SECOND).unwrap_or(0);
    u64::try_from(nanos / NANOS_PER_SECOND).map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
}
