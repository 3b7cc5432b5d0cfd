//! The running quantile of observed latencies: in flows how long first attempts took, out flows the
//! delay after which only the stated share of them is still without an answer.
//!
//! A histogram whose buckets are a sixteenth of their power of two wide, so that the estimate is at
//! most 6.25 % (and a microsecond) above the true quantile of what was counted, and never below it.
//! Older samples count less: all weights are halved each time a window is full.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reattempt_core::ConfigError;
use tokio::time::Instant;

/// Buckets in each power of two, and how many of its bits tell them apart.
const STEPS: usize = 16;
const STEP_BITS: u32 = 4;
/// Longer latencies, from some 19 hours on, count as that.
const LONGEST_MICROS: u64 = (1 << 36) - 1;
const BUCKETS: usize = STEPS * 33;
/// What one sample weighs when it is fresh: halved eight times it is gone.
const WEIGHT: u32 = 256;
/// One in so many samples makes the quantile anew.
const EVERY: u32 = 16;
/// The fewest samples to go by, and the fewest of them that lie beyond the quantile.
const LEAST_SAMPLES: u32 = 100;
const LEAST_BEYOND: u32 = 10;
/// A window is so many times the samples to go by.
const WINDOW: u32 = 10;
/// No quantile yet.
const UNKNOWN: u64 = u64::MAX;
const MILLION: u32 = 1_000_000;

/// A running quantile, shared by all calls of a policy.
pub(super) struct Latencies {
    /// The share of latencies below the quantile, in millionths.
    below: u32,
    /// The samples before there is a quantile.
    warm_up: u32,
    /// In microseconds.
    quantile: AtomicU64,
    histogram: Mutex<Histogram>,
}

struct Histogram {
    weights: Box<[u32]>,
    /// Samples since the weights were halved.
    fresh: u32,
    /// Samples so far, up to the warm-up.
    seen: u32,
}

impl Latencies {
    /// The `quantile` of latencies: 0.95 is longer than 95 of 100 are.
    ///
    /// # Errors
    /// Unless it is a number from 0.5 to 0.9999.
    pub(super) fn new(quantile: f64) -> Result<Self, ConfigError> {
        if !(0.5..=0.9999).contains(&quantile) {
            return Err(ConfigError::new("delay_quantile", quantile, "from 0.5 to 0.9999"));
        }
        Ok(Self::of_millionths(millionths(quantile)))
    }

    /// The 95th percentile: at most one call in twenty is hedged for taking long.
    pub(super) fn usual() -> Self {
        Self::of_millionths(950_000)
    }

    fn of_millionths(below: u32) -> Self {
        let beyond = MILLION - below;
        let warm_up = (LEAST_BEYOND * MILLION).div_ceil(beyond).max(LEAST_SAMPLES);
        let weights = vec![0; BUCKETS].into_boxed_slice();
        Self {
            below,
            warm_up,
            quantile: AtomicU64::new(UNKNOWN),
            histogram: Mutex::new(Histogram { weights, fresh: 0, seen: 0 }),
        }
    }

    /// The quantile; `None` until there are samples enough to tell.
    pub(super) fn quantile(&self) -> Option<Duration> {
        let micros = self.quantile.load(Ordering::Relaxed);
        (micros != UNKNOWN).then(|| Duration::from_micros(micros))
    }

    /// Counts a latency. The lock is held for a few additions, and once in sixteen times for a walk
    /// along the buckets.
    pub(super) fn record(&self, latency: Duration) {
        let mut histogram = self.histogram.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(weight) = histogram.weights.get_mut(bucket(latency)) {
            *weight = weight.saturating_add(WEIGHT);
        }
        histogram.seen = self.warm_up.min(histogram.seen.saturating_add(1));
        histogram.fresh += 1;
        if histogram.fresh >= self.warm_up.saturating_mul(WINDOW) {
            histogram.fresh = 0;
            for weight in &mut histogram.weights {
                *weight /= 2;
            }
        }
        let known = self.quantile.load(Ordering::Relaxed) != UNKNOWN;
        if histogram.seen == self.warm_up && (!known || histogram.fresh.is_multiple_of(EVERY)) {
            let micros = histogram.quantile(self.below);
            self.quantile.store(micros, Ordering::Relaxed);
        }
    }
}

impl Histogram {
    /// The upper end of the bucket in which the quantile lies, in microseconds.
    fn quantile(&self, below: u32) -> u64 {
        let total: u64 = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let rank = (total * u64::from(below)).div_ceil(u64::from(MILLION));
        let mut passed = 0;
        for (bucket, weight) in self.weights.iter().enumerate() {
            passed += u64::from(*weight);
            if passed >= rank {
                return upper_end(bucket);
            }
        }
        LONGEST_MICROS
    }
}

/// The bucket of a latency: for fewer than sixteen microseconds their number, else the power of two
/// and the four bits after its first.
fn bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).min(LONGEST_MICROS);
    let shift = micros.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    let power = usize::try_from(shift).unwrap_or(0);
    let step = usize::try_from(micros >> shift).unwrap_or(0);
    power * STEPS + step
}

/// The longest latency in a bucket, rounded up to whole microseconds.
fn upper_end(bucket: usize) -> u64 {
    let power = (bucket / STEPS).saturating_sub(1);
    let step = u64::try_from(bucket - power * STEPS).unwrap_or(0);
    (step + 1) << power
}

/// A share from 0.5 to 0.9999 in millionths.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it was found to lie in between"
)]
fn millionths(share: f64) -> u32 {
    (share * f64::from(MILLION)).round() as u32
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("below_millionths", &self.below)
            .field("quantile", &self.quantile())
            .finish_non_exhaustive()
    }
}

/// Times the first attempt of a call.
///
/// Every first attempt that outlasts the delay is counted, whether it answers, fails, loses or is
/// given up by the caller: with the time that it had had, which is long enough to lie beyond the
/// quantile. So the share that is hedged stays what was stated, though losers never tell how long
/// they would have taken. One that ended sooner counts only if it brought an answer.
#[derive(Debug)]
pub(super) struct Stopwatch {
    latencies: Arc<Latencies>,
    started: Instant,
    /// The quantile when the call began.
    delay: Option<Duration>,
}

impl Stopwatch {
    pub(super) fn start(latencies: &Arc<Latencies>) -> Self {
        let delay = latencies.quantile();
        Self { latencies: Arc::clone(latencies), started: Instant::now(), delay }
    }

    /// The delay before a hedge; `None` while too little is known.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay
    }

    /// When the attempt was sent.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// The attempt has brought an answer.
    pub(super) fn answered(mut self) {
        self.delay = Some(Duration::ZERO);
    }
}

impl Drop for Stopwatch {
    fn drop(&mut self) {
        let latency = self.started.elapsed();
        if self.delay.is_some_and(|delay| latency >= delay) {
            self.latencies.record(latency);
        }
    }
}

#[cfg(test)]
mod tests;
