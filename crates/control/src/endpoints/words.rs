//! An endpoint's atomic words for its failures: the running failure rate with consecutive failures, and a window of
//! calls.
//!
//! Each word has its own time stamp and decays when it is read, so no timer or periodic work is needed.

use crate::sync::{AtomicU64, Ordering};

/// A time in milliseconds, modulo 49 days. A stamp in the future, from another thread's later clock reading, has age 0.
/// So does one that is 25 to 49 days old.
pub(crate) type Stamp = u32;

/// Failure rates halve in 2¹² ms.
const HALF_LIFE: u32 = 12;
/// The running failure rate of an endpoint whose attempts all fail.
const ONE: u32 = 1 << 16;
/// Each step moves the running failure rate an eighth of the way to 0 or to [`ONE`].
const STEP: u32 = 8;

/// Replaces the count of consecutive failures while the endpoint is ejected, so that further failures are not reported.
const OUT: u32 = UNREACHABLE - 1;
/// Replaces the count if the next failure ejects the endpoint, or has just done so.
const ON_TRIAL: u32 = OUT - 1;
/// The number of failures that a lost connection counts as. It is a single event, but ends several calls.
// C-8
const LOST: u32 = 2;
/// Marks an endpoint that is ejected because it accepts no connection, above the count of consecutive failures.
const UNREACHABLE: u32 = 1 << 15;

/// The length of a window in milliseconds, and the maximum number of calls counted.
const WINDOW: u32 = 10_000;
const FULL: u32 = 0xffff;
/// The largest minimum of calls for a decision.
pub(crate) const MOST_CALLS: u32 = 60_000;

/// Returns the milliseconds since a stamp.
pub(crate) const fn age(since: Stamp, now: Stamp) -> u32 {
    let age = now.wrapping_sub(since);
    if age > u32::MAX / 2 { 0 } else { age }
}

/// Returns the decayed value. It is halved every 2ⁿ ms, where n is `HALF_LIFE`, and decreases linearly in between.
#[inline]
pub(crate) fn decayed<const HALF_LIFE: u32>(value: u32, age: u32) -> u32 {
    let halved = value.checked_shr(age >> HALF_LIFE).unwrap_or(0);
    let rest = age & ((1 << HALF_LIFE) - 1);
    let (_, fallen) = halves((u64::from(halved) * u64::from(rest)) >> (HALF_LIFE + 1));
    halved - fallen
}

/// Returns the upper and the lower half.
#[allow(clippy::cast_possible_truncation, reason = "each half has 32 bits")]
#[inline]
pub(crate) const fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

#[inline]
pub(crate) const fn joined(upper: u32, lower: u32) -> u64 {
    ((upper as u64) << 32) | lower as u64
}

/// The running failure rate and the number of consecutive failures.
///
/// Upper half: the stamp of the rate. Lower half: the rate in 16 bits, with the consecutive failures and the mark
/// [`UNREACHABLE`] above it. The word of an endpoint without failures is 0.
#[derive(Debug, Default)]
pub(crate) struct FailureWord(AtomicU64);

/// The parts of a [`FailureWord`].
#[derive(Clone, Copy)]
struct Failures {
    rate: u32,
    row: u32,
    is_unreachable: bool,
    since: Stamp,
}

impl Failures {
    #[inline]
    const fn of(word: u64) -> Self {
        let (since, lower) = halves(word);
        let upper = lower / ONE;
        Self { rate: lower % ONE, row: upper % UNREACHABLE, is_unreachable: upper >= UNREACHABLE, since }
    }

    #[inline]
    const fn word(self) -> u64 {
        let upper = if self.is_unreachable { self.row | UNREACHABLE } else { self.row };
        match (self.rate, upper) {
            (0, 0) => 0,
            (rate, upper) => joined(self.since, upper * ONE + rate),
        }
    }

    #[inline]
    fn rate_at(self, now: Stamp) -> u32 {
        decayed::<HALF_LIFE>(self.rate, age(self.since, now))
    }

    fn raised(self, now: Stamp) -> Self {
        let rate = self.rate_at(now);
        Self { rate: rate + (ONE - rate) / STEP, since: now, ..self }
    }

    fn lowered(self, now: Stamp) -> Self {
        let rate = self.rate_at(now);
        Self { rate: rate - rate.div_ceil(STEP), since: now, ..self }
    }
}

impl FailureWord {
    /// Returns the running failure rate, in parts of 65,536.
    #[inline]
    pub(crate) fn rate(&self, now: Stamp) -> u32 {
        Failures::of(self.0.load(Ordering::Relaxed)).rate_at(now)
    }

    /// Returns the rate as of the last attempt.
    pub(crate) fn last_rate(&self) -> u32 {
        Failures::of(self.0.load(Ordering::Relaxed)).rate
    }

    /// Returns `true` if the rate is below a quarter.
    pub(crate) fn is_low(&self, now: Stamp) -> bool {
        self.rate(now) < ONE / 4
    }

    /// Returns `true` if the rate is a quarter or more. An endpoint without failures costs a single comparison.
    #[inline]
    pub(crate) fn is_high(&self, now: Stamp) -> bool {
        self.0.load(Ordering::Relaxed) != 0 && !self.is_low(now)
    }

    /// Returns `true` if the rate was below a quarter at the last attempt. Time alone makes no endpoint well (P-8).
    pub(crate) fn was_low(&self) -> bool {
        self.last_rate() < ONE / 4
    }

    /// Forgets the rate. The count of consecutive failures stays (P-5).
    pub(crate) fn forget(&self) {
        self.change(|failures| Failures { rate: 0, ..failures });
    }

    /// Returns 1 + 32 f, in parts of 1,024.
    #[inline]
    pub(crate) fn factor(&self, now: Stamp) -> u64 {
        match self.0.load(Ordering::Relaxed) {
            0 => 1024,
            word => u64::from(1024 + Failures::of(word).rate_at(now) / 2),
        }
    }

    /// Records a success. An endpoint without failures writes nothing.
    #[inline]
    pub(crate) fn served(&self, now: Stamp) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.lower(now);
        }
    }

    #[cold]
    fn lower(&self, now: Stamp) {
        self.change(|failures| {
            let row = if failures.row == OUT { OUT } else { 0 };
            Failures { row, is_unreachable: false, ..failures.lowered(now) }
        });
    }

    /// Records that the server refused work, which does not count as a consecutive failure.
    pub(crate) fn overloaded(&self, now: Stamp) {
        self.change(|failures| failures.raised(now));
    }

    /// Records a failure. Returns `true` if it completes the number of consecutive failures, or the endpoint was on
    /// trial, and it is not already out.
    pub(crate) fn failed(&self, limit: u32, now: Stamp) -> bool {
        self.add(1, limit, now)
    }

    /// Records a lost connection. Returns the same as [`failed`](Self::failed).
    pub(crate) fn lost(&self, limit: u32, now: Stamp) -> bool {
        self.add(LOST, limit, now)
    }

    fn add(&self, number: u32, limit: u32, now: Stamp) -> bool {
        let new = self.change(|failures| {
            let row = match failures.row {
                row @ (ON_TRIAL | OUT) => row,
                row if row + number >= limit => ON_TRIAL,
                row => (row + number).min(ON_TRIAL - 1),
            };
            Failures { row, ..failures.raised(now) }
        });
        new.row == ON_TRIAL
    }

    /// Records that the endpoint accepted no connection, which raises its rate only. Returns `true` if it is not marked
    /// as unreachable.
    pub(crate) fn not_connected(&self, now: Stamp) -> bool {
        !self.change(|failures| failures.raised(now)).is_unreachable
    }

    /// Marks the endpoint as out.
    pub(crate) fn put_out(&self) {
        self.change(|failures| Failures { row: OUT, ..failures });
    }

    /// Clears the mark set by [`put_out`](Self::put_out). Unless `well`, a failure before the first success ejects the
    /// endpoint again.
    pub(crate) fn let_in(&self, well: bool) {
        self.change(|failures| Failures { row: if well { 0 } else { ON_TRIAL }, ..failures });
    }

    /// Marks the endpoint as unreachable, until its next success.
    pub(crate) fn mark_unreachable(&self) {
        self.change(|failures| Failures { is_unreachable: true, ..failures });
    }

    pub(crate) fn is_unreachable(&self) -> bool {
        Failures::of(self.0.load(Ordering::Relaxed)).is_unreachable
    }

    /// Clears the mark set by [`mark_unreachable`](Self::mark_unreachable), without a success. A failure before the
    /// first success ejects the endpoint again.
    pub(crate) fn try_again(&self) {
        self.change(|failures| Failures { row: failures.row.max(ON_TRIAL), is_unreachable: false, ..failures });
    }

    /// Returns `true` if the next failure ejects the endpoint.
    pub(crate) fn is_on_trial(&self) -> bool {
        Failures::of(self.0.load(Ordering::Relaxed)).row == ON_TRIAL
    }

    /// Changes the word and returns the new state.
    fn change(&self, change: impl Fn(Failures) -> Failures) -> Failures {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let new = change(Failures::of(word));
            let swapped = self.0.compare_exchange(word, new.word(), Ordering::Relaxed, Ordering::Relaxed);
            match swapped {
                Ok(_) => return new,
                Err(other) => word = other,
            }
        }
    }
}

/// The calls and failures within ten seconds, starting with a failure.
///
/// Upper half: the stamp of the start. Lower half: calls and failures, 16 bits each. The word is 0 while no window is
/// open, so successes write nothing then.
#[derive(Debug, Default)]
pub(crate) struct WindowWord(AtomicU64);

impl WindowWord {
    /// Records a success.
    #[inline]
    pub(crate) fn served(&self, now: Stamp) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.count(now);
        }
    }

    #[cold]
    fn count(&self, now: Stamp) {
        self.change(|open| match open {
            Some((since, calls, failures)) if age(since, now) < WINDOW => (since, calls + 1, failures),
            _ => (0, 0, 0),
        });
    }

    /// Records a failure. Returns the calls and the failures in the window.
    pub(crate) fn failed(&self, now: Stamp) -> (u32, u32) {
        self.change(|open| match open {
            Some((since, calls, failures)) if age(since, now) < WINDOW => (since, calls + 1, failures + 1),
            _ => (now, 1, 1),
        })
    }

    /// Records the failure of a call that was already counted as a success. Returns the same as
    /// [`failed`](Self::failed).
    pub(crate) fn broke(&self, now: Stamp) -> (u32, u32) {
        self.change(|open| match open {
            Some((since, calls, failures)) if age(since, now) < WINDOW => {
                (since, calls.max(failures + 1), failures + 1)
            }
            _ => (now, 1, 1),
        })
    }

    /// Closes the window.
    pub(crate) fn close(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Changes the window and returns its calls and failures. A window with the maximum count is treated as closed.
    fn change(&self, change: impl Fn(Option<(Stamp, u32, u32)>) -> (Stamp, u32, u32)) -> (u32, u32) {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let (since, counts) = halves(word);
            let (old, failed) = (counts >> 16, counts & FULL);
            let open = (0 < old && old < FULL).then_some((since, old, failed));
            let (since, calls, failures) = change(open);
            let new = joined(since, (calls << 16) | failures);
            match self.0.compare_exchange(word, new, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return (calls, failures),
                Err(other) => word = other,
            }
        }
    }
}
