//! A running quantile of observed latencies, which determines when hedges are sent.
//!
//! The quantile is read from a histogram. Each power of two has 16 buckets. Older samples count less, because all
//! weights are halved whenever a window is full.
//!
//! There is no loom model: one lock guards the histogram and every store of the quantile.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::millionths::{MILLION, millionths};

/// The number of buckets per power of two, and the number of bits that select one.
const STEPS: usize = 16;
const STEP_BITS: u32 = 4;
/// Longer latencies are recorded as this one, about 19 hours.
const LONGEST_MICROS: u64 = (1 << 36) - 1;
const BUCKETS: usize = STEPS * 33;
/// The weight of a fresh sample, which becomes 0 after nine halvings.
const WEIGHT: u32 = 256;
/// The number of samples per update of the quantile.
const EVERY: u32 = 16;
/// The minimum number of samples, and of samples above the quantile.
const LEAST_SAMPLES: u64 = 100;
const LEAST_BEYOND: u64 = 10;
/// The length of a window, as a multiple of the warm-up.
const WINDOW: u32 = 10;
/// No quantile yet.
const UNKNOWN: u64 = u64::MAX;

/// A running quantile of latencies, shared by all calls of a client.
///
/// The estimate is never below the quantile of the samples, and exceeds it by at most 6.25 % or 1 µs, whichever is
/// more.
///
/// Older samples count less: all weights are halved after every 1000 samples, or more for high quantiles (2000 for the
/// 95th percentile).
///
/// ```
/// use std::time::Duration;
/// use reattempt_control::Latencies;
///
/// let latencies = Latencies::new(0.5);
/// for _ in 0..100 {
///     assert_eq!(latencies.quantile(), None, "too few samples");
///     latencies.record(Duration::from_millis(10));
/// }
/// assert!(latencies.quantile().is_some_and(|median| median < Duration::from_micros(10_700)));
/// ```
pub struct Latencies {
    /// The share of latencies below the quantile, in millionths.
    below: u64,
    /// The number of samples needed before there is a quantile.
    warm_up: u32,
    /// In microseconds.
    quantile: AtomicU64,
    histogram: Mutex<Histogram>,
}

struct Histogram {
    weights: Box<[u32]>,
    /// Samples since the weights were last halved.
    fresh: u32,
    /// Samples so far, up to the warm-up.
    seen: u32,
}

impl Latencies {
    /// Creates a running quantile. With 0.95, 95 of 100 latencies are below the quantile.
    ///
    /// `quantile` is clamped to 0.5 to 0.9999, and NaN is treated as 0.5.
    pub fn new(quantile: f64) -> Self {
        Self::of_millionths(millionths(quantile, 0.5, 0.9999))
    }

    /// Creates a running 95th percentile: one call in twenty takes longer.
    pub fn p95() -> Self {
        Self::of_millionths(950_000)
    }

    fn of_millionths(below: u64) -> Self {
        let beyond = MILLION - below;
        let warm_up = (LEAST_BEYOND * MILLION).div_ceil(beyond).max(LEAST_SAMPLES);
        let warm_up = u32::try_from(warm_up).unwrap_or(u32::MAX);
        let weights = vec![0; BUCKETS].into_boxed_slice();
        Self {
            below,
            warm_up,
            quantile: AtomicU64::new(UNKNOWN),
            histogram: Mutex::new(Histogram { weights, fresh: 0, seen: 0 }),
        }
    }

    /// Returns the quantile, or `None` if there are too few samples. The minimum is 100, or the number of which ten
    /// exceed the quantile if that is more: 200 for the 95th percentile.
    pub fn quantile(&self) -> Option<Duration> {
        let micros = self.quantile.load(Ordering::Relaxed);
        (micros != UNKNOWN).then(|| Duration::from_micros(micros))
    }

    /// Returns the weighted number of samples, in which older samples count partially.
    pub fn samples(&self) -> u32 {
        self.lock().weights.iter().sum::<u32>() / WEIGHT
    }

    /// Records a latency. Holds a lock for a few additions, and, on every sixteenth sample, for a pass over 528
    /// buckets.
    pub fn record(&self, latency: Duration) {
        let mut histogram = self.lock();
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

    fn lock(&self) -> MutexGuard<'_, Histogram> {
        self.histogram.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Histogram {
    /// Returns the upper end of the bucket that contains the quantile, in microseconds.
    fn quantile(&self, below: u64) -> u64 {
        let total: u64 = self.weights.iter().map(|weight| u64::from(*weight)).sum();
        let rank = (total * below).div_ceil(MILLION);
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

/// Returns the bucket for a latency. Below 16 µs, each microsecond has its own bucket. Above, the power of two and the
/// next four bits select it.
fn bucket(latency: Duration) -> usize {
    let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).min(LONGEST_MICROS);
    let shift = micros.checked_ilog2().unwrap_or(0).saturating_sub(STEP_BITS);
    let power = usize::try_from(shift).unwrap_or(0);
    let step = usize::try_from(micros >> shift).unwrap_or(0);
    power * STEPS + step
}

/// Returns the longest latency in a bucket, rounded up to whole microseconds.
fn upper_end(bucket: usize) -> u64 {
    let power = (bucket / STEPS).saturating_sub(1);
    let step = u64::try_from(bucket - power * STEPS).unwrap_or(0);
    (step + 1) << power
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Latencies")
            .field("below_millionths", &self.below)
            .field("quantile", &self.quantile())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
