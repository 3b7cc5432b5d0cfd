//! The usual latency of a destination, from a few of its served calls.

use std::time::Duration;

use super::time::nanos;
use crate::sync::{AtomicU64, Ordering};

/// A running estimate of the latency that most served calls stay below. It rises quickly and falls slowly.
///
/// It is updated only on slow paths: for calls that waited in a queue, and for calls that a breaker records under its
/// lock. An update is one compare-and-swap. If another thread is faster, its sample is enough.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::UsualLatency;
///
/// let usual = UsualLatency::default();
/// assert_eq!(usual.get(), None);
/// usual.record(Duration::from_millis(100));
/// assert_eq!(usual.get(), Some(Duration::from_millis(100)));
/// // A single slow call counts as twice the estimate at most.
/// usual.record(Duration::from_secs(60));
/// assert_eq!(usual.get(), Some(Duration::from_millis(150)));
/// ```
#[derive(Debug, Default)]
pub struct UsualLatency {
    /// In nanoseconds, or 0 if unknown.
    estimate: AtomicU64,
}

impl UsualLatency {
    /// Returns the estimate, or `None` before the first sample.
    #[must_use]
    pub fn get(&self) -> Option<Duration> {
        let estimate = self.estimate.load(Ordering::Relaxed);
        (estimate > 0).then(|| Duration::from_nanos(estimate))
    }

    /// Records the latency of a served call.
    pub fn record(&self, latency: Duration) {
        let known = self.estimate.load(Ordering::Relaxed);
        let next = moved(known, nanos(latency));
        // The other thread's sample is equally valid.
        let _ = self.estimate.compare_exchange(known, next, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Returns the estimate after a sample: half the way up, or an eighth of the way down. A sample counts as at most twice
/// the estimate, because a long memory of one slow call would hide a server that hangs.
fn moved(known: u64, sample: u64) -> u64 {
    if known == 0 {
        return sample.max(1);
    }
    let sample = sample.min(known.saturating_mul(2));
    let next = if sample > known { known + (sample - known) / 2 } else { known - (known - sample) / 8 };
    next.max(1)
}

// Under loom, atomics exist only inside a model.
#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn after(samples: impl IntoIterator<Item = u64>) -> u64 {
        samples.into_iter().fold(0, moved)
    }

    #[test]
    fn estimate_is_above_most_samples() {
        // Latencies of 10 to 100 ms, in an order without a trend.
        let samples = (0..1000).map(|n| (10 + n * 37 % 91) * MS);
        let estimate = after(samples.clone());
        let below = samples.filter(|sample| *sample <= estimate).count();
        assert!((650..950).contains(&below), "{below} of 1000 are below {estimate}");
    }

    #[test]
    fn one_slow_call_is_soon_forgotten() {
        let steady = || std::iter::repeat_n(100 * MS, 20);
        let slow = steady().chain([60_000 * MS]);
        assert_eq!(after(slow.clone()), 150 * MS);
        assert!(after(slow.chain(steady())) < 105 * MS);
    }

    #[test]
    fn extremes_do_not_overflow() {
        for samples in [[0, 0], [0, u64::MAX], [u64::MAX, u64::MAX], [u64::MAX, 0]] {
            assert!(after(samples) > 0);
        }
        let usual = UsualLatency::default();
        usual.record(Duration::MAX);
        usual.record(Duration::ZERO);
        assert!(usual.get().is_some());
    }
}
