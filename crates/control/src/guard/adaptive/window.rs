//! A destination's samples since its limit last moved, shared by threads without a lock.
//!
//! Samples are recorded independently. A sample recorded while a window closes counts in this window or in the next;
//! none is lost.

use std::time::Duration;

use super::super::time::nanos;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// The number of latencies that a window stores; later ones overwrite the earliest.
const SAMPLES: usize = 256;

/// The lowest bit of the count of dropped calls in the word of counts.
const DROPPED: u32 = 32;

/// The number of samples needed to close a window. With fewer samples, it stays open longer.
const ENOUGH: u64 = 50;
/// The minimum and maximum time for which a window is open, in nanoseconds.
const SHORTEST: u64 = 1_000_000_000;
const LONGEST: u64 = 30 * SHORTEST;

/// The samples of a closed window, used by a [`LimitRule`](super::LimitRule).
///
/// A window is closed once it is 1 s old and has 50 samples, or at the latest after 30 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LimitWindow {
    /// The number of calls that the server answered.
    pub served: u32,
    /// The number of calls that the server refused or did not answer in time (429, 503, RESOURCE_EXHAUSTED, timeouts).
    pub dropped: u32,
    /// The 90th percentile of the latencies of served calls, or of the last 256 if there are more.
    pub latency: Option<Duration>,
    /// The highest number of calls that were in flight when a call of the window started.
    pub in_flight: u32,
}

/// The atomic words of an open window.
pub(crate) struct SampleWindow {
    /// Served calls in the low bits, and dropped calls from bit [`DROPPED`] on.
    counts: AtomicU64,
    in_flight: AtomicU32,
    /// The nanosecond at which the window began, or 0 before the first sample.
    start: AtomicU64,
    /// In microseconds, or 0 for an empty slot.
    latencies: Box<[AtomicU32]>,
}

impl SampleWindow {
    pub(crate) fn new() -> Self {
        Self {
            counts: AtomicU64::new(0),
            in_flight: AtomicU32::new(0),
            start: AtomicU64::new(0),
            latencies: (0..SAMPLES).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Records the end of a call. Returns `true` if the window should be closed.
    ///
    /// A call that started before the window is not a sample, because it ran under the previous limit. A window is
    /// therefore open for longer than its calls take.
    #[inline]
    pub(crate) fn record(&self, served: bool, latency: Duration, in_flight: u32, now: Duration) -> bool {
        let (now, latency) = (nanos(now).max(1), nanos(latency));
        let began = now.saturating_sub(latency).max(1);
        let start = match self.start.load(Ordering::Acquire) {
            0 => self.begin(began),
            start => start,
        };
        if began < start {
            return false;
        }
        if in_flight > self.in_flight.load(Ordering::Relaxed) {
            self.in_flight.fetch_max(in_flight, Ordering::Relaxed);
        }
        let counts = if served {
            let counts = self.counts.fetch_add(1, Ordering::Relaxed);
            let micros = u32::try_from(latency / 1000).unwrap_or(u32::MAX).max(1);
            self.latencies[low(counts) as usize % SAMPLES].store(micros, Ordering::Relaxed);
            counts
        } else {
            self.counts.fetch_add(1 << DROPPED, Ordering::Relaxed)
        };
        is_due(start, counts.wrapping_add(1), now)
    }

    /// Begins the first window. Another thread may have begun it already; its start time is equally valid.
    #[cold]
    fn begin(&self, began: u64) -> u64 {
        let (set, failed) = (Ordering::AcqRel, Ordering::Acquire);
        self.start.compare_exchange(0, began, set, failed).map_or_else(|start| start, |_| began)
    }

    /// Closes the window and begins the next, if it is still due to close. Only one thread at a time may call it.
    pub(crate) fn close(&self, now: Duration) -> Option<LimitWindow> {
        let now = nanos(now);
        let start = self.start.load(Ordering::Acquire);
        if !is_due(start, self.counts.load(Ordering::Relaxed), now) {
            return None;
        }
        self.start.store(now, Ordering::Release);
        let counts = self.counts.swap(0, Ordering::Relaxed);
        let in_flight = self.in_flight.swap(0, Ordering::Relaxed);
        let kept = self.latencies.iter().take(low(counts) as usize);
        let mut latencies: Vec<_> = kept.map(|one| one.swap(0, Ordering::Relaxed)).filter(|one| *one > 0).collect();
        let latency = percentile(&mut latencies, 90);
        let dropped = u32::try_from(counts >> DROPPED).unwrap_or(u32::MAX);
        Some(LimitWindow { served: low(counts), dropped, latency, in_flight })
    }

    /// Returns `true` before the first sample.
    pub(crate) fn is_new(&self) -> bool {
        self.start.load(Ordering::Acquire) == 0
    }
}

/// Returns `true` if a window with this start time and these counts should be closed.
#[inline]
fn is_due(start: u64, counts: u64, now: u64) -> bool {
    let open = now.saturating_sub(start);
    let samples = u64::from(low(counts)) + (counts >> DROPPED);
    open >= SHORTEST && samples >= ENOUGH || open >= LONGEST
}

#[allow(clippy::cast_possible_truncation, reason = "the calls served are the low half")]
const fn low(counts: u64) -> u32 {
    counts as u32
}

fn percentile(micros: &mut [u32], percent: usize) -> Option<Duration> {
    let rank = (micros.len() * percent).div_ceil(100).checked_sub(1)?;
    let (_, value, _) = micros.select_nth_unstable(rank);
    Some(Duration::from_micros(u64::from(*value)))
}
