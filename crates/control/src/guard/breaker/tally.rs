//! A tally of the calls to a healthy server, counted without the lock.
//!
//! While a breaker is closed and no bucket, window or run of failures ends, calls and successes only need counting. The
//! *tally* counts them. Each step under the lock first adds the tally to the machine, and finally opens an empty tally.
//! Every call is thus counted exactly once, before or after a step.
//!
//! The tally has a few words, and each thread uses one of them. Contention for a single word would cost more than the
//! rest of the call. A step closes all words before it reads any count.

use std::time::Duration;

use super::super::time::nanos;
use crate::sync::{Apart, AtomicU64, Ordering, STRIPES, stripe};

/// The tally is open.
const OPEN: u64 = 1 << 63;
/// The tally also records successes.
const TAKES_SUCCESSES: u64 = 1 << 62;
/// The low bits of the machine's epoch.
const EPOCH: u64 = 0x3fff_ffff << 32;
const CALL: u64 = 1 << 16;
const CALLS: u64 = 0xffff << 16;
const SUCCESSES: u64 = 0xffff;

/// A breaker's note in an admitted call's ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BreakerNote {
    pub(crate) generation: u64,
    pub(crate) age: u64,
    pub(crate) probe: u64,
    /// The tag of the tally that counted the call, [`NO_TAG`] for a probe, or [`SAMPLE_TAG`].
    pub(crate) tag: u64,
}

/// A part of a window during which the machine has nothing to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Epoch {
    pub(crate) number: u64,
    pub(crate) generation: u64,
    pub(crate) age: u64,
    /// The nanosecond at which it ends.
    pub(crate) quiet_until: u64,
    /// The nanosecond at which a fixed window ends, or the maximum if it never does.
    pub(crate) ends_at: u64,
    pub(crate) takes_successes: bool,
}

/// The tag of a note that no tally accepts, because one of its count bits is set.
pub(crate) const NO_TAG: u64 = 1;

/// The tag of a note whose success the machine records, to measure the latency of a call now and then.
pub(crate) const SAMPLE_TAG: u64 = 2;

pub(crate) struct Tally {
    /// 0 while the tally is closed. The words differ only in their counts.
    words: [Apart<AtomicU64>; STRIPES],
    /// The nanosecond before which the machine has nothing to do. This and the next three fields belong to the epoch in
    /// the words.
    quiet_until: AtomicU64,
    /// The nanosecond at which a fixed window ends.
    ends_at: AtomicU64,
    generation: AtomicU64,
    age: AtomicU64,
}

impl Tally {
    /// Creates a closed tally.
    pub(crate) fn new() -> Self {
        Self {
            words: std::array::from_fn(|_| Apart(AtomicU64::new(0))),
            quiet_until: AtomicU64::new(0),
            ends_at: AtomicU64::new(0),
            generation: AtomicU64::new(0),
            age: AtomicU64::new(0),
        }
    }

    /// Counts a call. Returns `None` if the machine must decide.
    #[inline]
    pub(crate) fn admit(&self, now: Duration) -> Option<BreakerNote> {
        let now = nanos(now);
        let own = self.own();
        let mut word = own.load(Ordering::Acquire);
        loop {
            let is_full = word & CALLS == CALLS;
            if word & OPEN == 0 || is_full || now >= self.quiet_until.load(Ordering::Relaxed) {
                return None;
            }
            // These values belong to the epoch if the word has not changed, because a step closes the tally before it
            // changes them.
            let (generation, age) = (self.generation.load(Ordering::Relaxed), self.age.load(Ordering::Relaxed));
            match replace(own, word, word + CALL) {
                Ok(()) => return Some(BreakerNote { generation, age, probe: 0, tag: tag(word) }),
                Err(seen) => word = seen,
            }
        }
    }

    /// Counts a success. Returns `false` if the machine must record it.
    ///
    /// A sliding window needs no time: the success belongs to the bucket of its admission, which no step has ended. A
    /// fixed window ends with the first call after its end, and earlier results do not count.
    #[inline]
    pub(crate) fn succeed(&self, note: &BreakerNote, now: Duration) -> bool {
        let own = self.own();
        let mut word = own.load(Ordering::Acquire);
        while takes_success(word, note) && self.is_before_end(now) {
            match replace(own, word, word + 1) {
                Ok(()) => return true,
                Err(seen) => word = seen,
            }
        }
        false
    }

    /// Returns `true` if [`succeed`](Self::succeed) would count a success with this note.
    #[inline]
    pub(crate) fn takes_success(&self, note: &BreakerNote) -> bool {
        takes_success(self.own().load(Ordering::Acquire), note) && self.ends_at.load(Ordering::Relaxed) == u64::MAX
    }

    #[inline]
    fn is_before_end(&self, now: Duration) -> bool {
        let end = self.ends_at.load(Ordering::Relaxed);
        end == u64::MAX || nanos(now) < end
    }

    /// Closes the tally. Returns its number of calls, and the number of successes among them.
    #[inline]
    pub(crate) fn close(&self) -> (u64, u64) {
        let words = self.words.iter().map(|word| word.0.swap(0, Ordering::AcqRel));
        words.fold((0, 0), |(calls, successes), word| (calls + ((word & CALLS) >> 16), successes + (word & SUCCESSES)))
    }

    /// Opens an empty tally.
    #[inline]
    pub(crate) fn open(&self, epoch: &Epoch) {
        self.quiet_until.store(epoch.quiet_until, Ordering::Relaxed);
        self.ends_at.store(epoch.ends_at, Ordering::Relaxed);
        self.generation.store(epoch.generation, Ordering::Relaxed);
        self.age.store(epoch.age, Ordering::Relaxed);
        let word = tag_of(epoch.number);
        let word = if epoch.takes_successes { word } else { word & !TAKES_SUCCESSES };
        self.words.iter().for_each(|own| own.0.store(word, Ordering::Release));
    }

    /// Returns this thread's word.
    #[inline]
    fn own(&self) -> &AtomicU64 {
        &self.words[stripe() % STRIPES].0
    }
}

#[inline]
fn replace(own: &AtomicU64, seen: u64, word: u64) -> Result<(), u64> {
    own.compare_exchange_weak(seen, word, Ordering::AcqRel, Ordering::Acquire).map(drop)
}

/// Returns the word without its counts, for comparison with a note's tag.
#[inline]
fn tag(word: u64) -> u64 {
    word & EPOCH | OPEN | TAKES_SUCCESSES
}

/// Returns `true` if the word belongs to the note's epoch and has room for another success.
#[inline]
fn takes_success(word: u64, note: &BreakerNote) -> bool {
    word & !(CALLS | SUCCESSES) == note.tag && word & SUCCESSES != SUCCESSES
}

/// Returns the tag for notes in `epoch`.
#[inline]
pub(crate) fn tag_of(epoch: u64) -> u64 {
    tag(epoch << 32)
}
