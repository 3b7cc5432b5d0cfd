//! The stopwatch that measures the latencies of first attempts.

use std::sync::Arc;
use std::time::Duration;

use reattempt_control::Latencies;

use crate::call::clock::Instant;

/// A stopwatch for a call's first attempt.
///
/// If the attempt outlasts the delay, it is recorded when the stopwatch is dropped, whether it succeeds, fails, loses
/// or is cancelled. Its time is then above the quantile, so the share of hedged calls stays as configured, although
/// losers never finish. An attempt that ends sooner is recorded only if it has a response.
#[derive(Debug)]
pub(super) struct Stopwatch {
    latencies: Arc<Latencies>,
    started: Instant,
    /// The quantile at the start of the call.
    delay: Option<Duration>,
}

impl Stopwatch {
    /// Starts the stopwatch with the first attempt.
    pub(super) fn start(latencies: &Arc<Latencies>) -> Self {
        let delay = latencies.quantile();
        Self { latencies: Arc::clone(latencies), started: Instant::now(), delay }
    }

    /// Returns the delay before a hedge, or `None` if there are too few samples.
    pub(super) fn delay(&self) -> Option<Duration> {
        self.delay
    }

    /// Returns the time at which the attempt was sent.
    pub(super) fn started(&self) -> Instant {
        self.started
    }

    /// Records that the attempt has a response, and stops.
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
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    #[tokio::test(start_paused = true)]
    async fn attempt_that_outlasts_the_delay_counts() {
        let latencies = Arc::new(Latencies::new(0.5));
        let count = || latencies.samples();
        let watch = Stopwatch::start(&latencies);
        drop(watch);
        assert_eq!(count(), 0, "given up while nothing was known");
        for _ in 0..100 {
            let watch = Stopwatch::start(&latencies);
            tokio::time::advance(micros(10_000)).await;
            watch.answered();
        }
        assert_eq!(count(), 100);
        let watch = Stopwatch::start(&latencies);
        tokio::time::advance(micros(9_000)).await;
        drop(watch);
        assert_eq!(count(), 100, "it ended without an answer, and soon");
        let watch = Stopwatch::start(&latencies);
        tokio::time::advance(micros(11_000)).await;
        drop(watch);
        assert_eq!(count(), 101, "it lost, with the time that it had had");
    }
}
