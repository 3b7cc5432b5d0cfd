//! A shared interval's settings, in nanoseconds, and the arithmetic of its moves.

use core::time::Duration;

/// The maximum threshold, because a run is counted in 23 bits.
pub(crate) const LONGEST_RUN: u32 = 0x7f_ffff;

/// The settings. The setters ensure `0 < initial ≤ max`, `up ≥ 1`, `0 < down < 1`, `0 ≤ randomisation ≤ 1` and
/// `1 ≤ threshold ≤ LONGEST_RUN`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    pub(crate) initial: u64,
    pub(crate) max: u64,
    pub(crate) max_randomisation: u64,
    pub(crate) up: f64,
    pub(crate) down: f64,
    pub(crate) randomisation: f64,
    pub(crate) threshold: u32,
}

/// The defaults that differ for turns.
///
/// With an initial interval of 500 ms, there is no rate between 2/s and unlimited, and with 1 ms, none between 1,000/s
/// and unlimited. The jitter is smaller, because all callers already take turns. With 0.3, a service with a capacity of
/// 1/s is utilised only 65 % in some minutes, and with 0.1, 80 % or more.
pub(crate) const INITIAL_OF_TURNS: u64 = 10_000;
pub(crate) const RANDOMISATION_OF_TURNS: f64 = 0.1;

impl Rule {
    pub(crate) const DEFAULT: Self = Self {
        initial: 500_000_000,
        max: 15 * 60 * 1_000_000_000,
        max_randomisation: 2 * 60 * 1_000_000_000,
        up: 1.5,
        down: 0.9,
        randomisation: 0.3,
        threshold: 10,
    };

    /// Returns `true` if a move needs a random number.
    pub(crate) fn draws(&self) -> bool {
        self.randomisation > 0.0 && self.max_randomisation > 0
    }

    /// Returns the interval after a refusal.
    pub(crate) fn moved_up(&self, interval: u64, drawn: u64) -> u64 {
        if interval == 0 {
            return self.initial;
        }
        self.randomise(times(interval, self.up), drawn).clamp(self.initial, self.max)
    }

    /// Returns the interval after four moves up without jitter.
    pub(crate) fn four_up(&self, interval: u64) -> u64 {
        (0..4).fold(interval, |interval, _| times(interval, self.up))
    }

    /// Returns the interval after a run of successes.
    pub(crate) fn moved_down(&self, interval: u64, drawn: u64) -> u64 {
        let next = self.randomise(times(interval, self.down), drawn).min(self.max);
        if next < self.initial { 0 } else { next }
    }

    /// Returns the threshold above which each success halves the interval. It is one step up from `start`, the interval
    /// at which the refusals began.
    pub(crate) fn recovered(&self, start: u64) -> u64 {
        times(start, self.up).clamp(self.initial, self.max)
    }

    /// Returns `x − d + U[0, 2d]`, where `d` is `r · x`, at most `max_randomisation`. The high half of the product of
    /// `drawn` (64 random bits) and `2d + 1` maps `drawn` onto `0..=2d`.
    fn randomise(&self, interval: u64, drawn: u64) -> u64 {
        let spread = times(interval, self.randomisation).min(self.max_randomisation);
        // The range must fit into 64 bits.
        let spread = spread.min(u64::MAX / 2);
        let product = u128::from(drawn) * u128::from(2 * spread + 1);
        let above = u64::try_from(product >> 64).unwrap_or(u64::MAX);
        interval.saturating_sub(spread).saturating_add(above)
    }
}

/// Returns `interval · factor` to the nearest nanosecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer saturates; past 104 days the float is precise to some nanoseconds"
)]
fn times(interval: u64, factor: f64) -> u64 {
    (interval as f64 * factor + 0.5) as u64
}

/// Converts a duration to nanoseconds, saturating.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
