//! An endpoint's latency, whose memory is bounded: one slow answer is forgotten within seconds.
//!
//! | rule | reason |
//! |---|---|
//! | it halves in 2 s (P-1) | a server that was slow is tried again soon |
//! | one attempt at most doubles it (P-2) | a single outlier costs one half-life, and a slow server is known after four answers |
//! | an attempt without an answer, at an endpoint that has not answered yet, is a lower bound (P-7) | otherwise a silent server would look as fast as the others, for ever |

use std::time::Duration;

use super::words::{Stamp, age, decayed, halves, joined};
use crate::sync::{AtomicU64, Ordering};

/// Latencies halve in 2¹¹ ms.
const HALF_LIFE: u32 = 11;
/// Marks an endpoint that has not answered since it is new or has returned.
const UNANSWERED: u32 = 1 << 31;
/// The place of the number of calls that were open when it returned, and the greatest such number.
const OPEN: u32 = 16;
const MOST_OPEN: usize = 0x7fff;
/// Lower bounds are in units of 2¹² × 256 ns, up to 68 s.
const COARSE: u32 = 12;
const HIGHEST_BOUND: u32 = 0xffff;

/// The peak EWMA of the time to the response head. It rises to a longer time within a few attempts, and decays to a
/// shorter one by half-lives.
///
/// Upper half: the time in units of 256 ns. It is 0 for a new endpoint, and has the mark [`UNANSWERED`] with a lower
/// bound after an attempt without an answer. Lower half: the stamp. An update is a single compare-and-swap. If another
/// thread is faster, its sample is enough.
#[derive(Debug, Default)]
pub(crate) struct LatencyWord(AtomicU64);

impl LatencyWord {
    /// Returns the latency in units of 256 ns, or 0 if unknown.
    #[inline]
    pub(crate) fn read(&self, now: Stamp) -> u32 {
        let (latency, since) = halves(self.0.load(Ordering::Relaxed));
        match latency {
            1..UNANSWERED => decayed::<HALF_LIFE>(latency, age(since, now)).max(1),
            _ => 0,
        }
    }

    /// Returns the last known latency, without its decay, or 0 if unknown.
    pub(crate) fn last(&self) -> u32 {
        known(halves(self.0.load(Ordering::Relaxed)).0)
    }

    /// Returns the lower bound in units of 256 ns, or 0 if there is none.
    pub(crate) fn at_least(&self, now: Stamp) -> u32 {
        bound(self.0.load(Ordering::Relaxed), now) << COARSE
    }

    /// Returns the number of calls that were open when the latency was forgotten. They do not measure it.
    pub(crate) fn open_before(&self) -> usize {
        match halves(self.0.load(Ordering::Relaxed)) {
            (latency @ UNANSWERED.., _) => ((latency ^ UNANSWERED) >> OPEN) as usize,
            _ => 0,
        }
    }

    /// Records a success.
    #[inline]
    pub(crate) fn served(&self, after: Duration, now: Stamp) {
        let word = self.0.load(Ordering::Relaxed);
        let (latency, since) = halves(word);
        let new = match latency {
            1..UNANSWERED => {
                let sample = units(after).min(2 * latency);
                sample + decayed::<HALF_LIFE>(latency.saturating_sub(sample), age(since, now))
            }
            _ => units(after),
        };
        self.replace(word, new, now);
    }

    /// Records a failure. It restores the last known latency, or raises it if the failure took longer.
    pub(crate) fn failed(&self, after: Duration, now: Stamp) {
        let word = self.0.load(Ordering::Relaxed);
        match known(halves(word).0) {
            0 => self.unanswered(word, after, now),
            latency => self.replace(word, latency.max(units(after).min(2 * latency)), now),
        }
    }

    /// Records an attempt that the caller dropped, which can only raise the latency.
    pub(crate) fn abandoned(&self, after: Duration, now: Stamp) {
        let word = self.0.load(Ordering::Relaxed);
        let (latency, since) = halves(word);
        match known(latency) {
            0 => self.unanswered(word, after, now),
            latency => {
                let sample = units(after).min(2 * latency);
                if sample > decayed::<HALF_LIFE>(latency, age(since, now)) {
                    self.replace(word, sample, now);
                }
            }
        }
    }

    /// Raises the lower bound. It doubles with each further attempt without an answer, so that a silent endpoint is
    /// tried ever less often, up to its limit.
    fn unanswered(&self, word: u64, after: Duration, now: Stamp) {
        let sample = (units(after) >> COARSE).min(HIGHEST_BOUND);
        if sample > bound(word, now) {
            let (latency, _) = halves(word);
            let raised = sample.max(2 * (latency & HIGHEST_BOUND)).min(HIGHEST_BOUND);
            self.replace(word, UNANSWERED | (latency & !HIGHEST_BOUND) | raised, now);
        }
    }

    /// Forgets the latency of an endpoint that returns with this many calls in flight (P-5).
    pub(crate) fn forget(&self, in_flight: usize, now: Stamp) {
        let (_, open) = halves(in_flight.min(MOST_OPEN) as u64);
        self.0.swap(joined(UNANSWERED | (open << OPEN), now), Ordering::Relaxed);
    }

    #[inline]
    fn replace(&self, word: u64, latency: u32, now: Stamp) {
        let new = joined(latency, now);
        // The other thread's sample is equally valid.
        let _ = self.0.compare_exchange(word, new, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Returns the latency in an upper half, or 0 if it is unknown.
const fn known(latency: u32) -> u32 {
    if latency < UNANSWERED { latency } else { 0 }
}

/// Returns the lower bound in a word, in coarse units.
fn bound(word: u64, now: Stamp) -> u32 {
    match halves(word) {
        (latency @ UNANSWERED.., since) => decayed::<HALF_LIFE>(latency & HIGHEST_BOUND, age(since, now)),
        _ => 0,
    }
}

/// The longest latency, in units of 256 ns: 9 minutes.
const LONGEST_UNITS: u32 = UNANSWERED - 1;
const LONGEST: Duration = Duration::from_nanos(LONGEST_UNITS as u64 * 256);

/// Converts a time to units of 256 ns, from 1 unit to 9 minutes.
#[inline]
fn units(time: Duration) -> u32 {
    if time >= LONGEST {
        return LONGEST_UNITS;
    }
    let nanoseconds = time.as_secs() * 1_000_000_000 + u64::from(time.subsec_nanos());
    let (_, units) = halves(nanoseconds >> 8);
    units.max(1)
}

/// Converts units of 256 ns to a time.
pub(crate) fn time_of(units: u32) -> Duration {
    Duration::from_nanos(u64::from(units) << 8)
}
