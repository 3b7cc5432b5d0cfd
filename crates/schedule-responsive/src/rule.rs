//! The settings of a shared interval, in nanoseconds, and the arithmetic of its moves.

use core::time::Duration;

/// The longest run of successes that can be asked for, and what the count of one takes.
pub(crate) const LONGEST_RUN: u32 = 0x7f_ffff;

/// The settings. The constructor's: `0 < initial ≤ max`, `up ≥ 1`, `0 < down < 1`, `0 ≤
/// randomisation ≤ 1`, `1 ≤ threshold ≤ LONGEST_RUN`.
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

/// The defaults that differ where the interval is that between turns.
///
/// With 500 ms no rate between 2/s and unpaced exists, and with 1 ms none between 1,000/s and unpaced.
/// Moves are scattered less, for all callers share one order of turns: with 0.3 the rate served by a
/// service that takes 1/s is as low as 65 % in some minutes, with 0.1 it is 80 % or more.
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

    /// The interval after a refusal.
    pub(crate) fn moved_up(&self, interval: u64, drawn: u64) -> u64 {
        if interval == 0 {
            return self.initial;
        }
        self.randomise(times(interval, self.up), drawn).clamp(self.initial, self.max)
    }

    /// The interval after a run of successes.
    pub(crate) fn moved_down(&self, interval: u64, drawn: u64) -> u64 {
        let next = self.randomise(times(interval, self.down), drawn).min(self.max);
        if next < self.initial { 0 } else { next }
    }

    /// The interval above which a success shortens it at once: one move up from where the refusals began.
    pub(crate) fn recovered(&self, start: u64) -> u64 {
        times(start, self.up).min(self.max)
    }

    /// `x − d + U[0, 2d]`, where `d` is `r · x` but at most the longest randomisation; `drawn` is the
    /// 64 random bits that are mapped onto `0..=2d`: the high half of their product with `2d + 1`.
    fn randomise(&self, interval: u64, drawn: u64) -> u64 {
        let spread = times(interval, self.randomisation).min(self.max_randomisation);
        // The range must fit into 64 bits.
        let spread = spread.min(u64::MAX / 2);
        let product = u128::from(drawn) * u128::from(2 * spread + 1);
        let above = u64::try_from(product >> 64).unwrap_or(u64::MAX);
        interval.saturating_sub(spread).saturating_add(above)
    }
}

/// `interval · factor` to the nearest nanosecond.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "float to integer saturates; past 104 days the float is precise to some nanoseconds"
)]
fn times(interval: u64, factor: f64) -> u64 {
    (interval as f64 * factor + 0.5) as u64
}

/// A duration that is known to fit, or the longest that does.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
