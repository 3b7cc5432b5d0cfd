//! The shared interval's state, which is moved by the outcomes of calls.
//!
//! Twenty calls refused at the same time must move the interval only once. An outcome therefore moves it only if its
//! call was sent after the last move in that direction. Each call notes the number of previous moves.
//!
//! For each direction, a word counts the moves, and has a bit that is set during a move. A move has three steps:
//!
//! 1. set the bit with a compare-and-swap, if the count is still the one that the call noted;
//! 2. change the interval;
//! 3. count the move and clear the bit.
//!
//! Outcomes during a move are ignored, so no thread waits. Moves up and down may happen at the same time: each changes
//! the interval with a compare-and-swap and keeps it within its bounds.
//!
//! With turns, the interval is moved by another rule ([`turns`](self::turns)).

mod turns;

use reattempt_core::Random;

use crate::rule::Rule;
use crate::sync::{AtomicU64, Ordering};
pub use turns::ReservedTurn;
use turns::Turns;

/// The bit that marks a move in progress, in both words.
pub(crate) const MOVING: u64 = 1;

/// The shift of the count in the word for moves up.
pub(crate) const UPS: u32 = 1;

/// One success in the word for moves down. The run of successes is above the bit, and the count is above the run.
pub(crate) const ONE_SUCCESS: u64 = 1 << 1;
pub(crate) const DOWNS: u32 = 24;
pub(crate) const RUN: u64 = (1 << DOWNS) - 1 - MOVING;

/// The bits of each count that fit in a note. They would wrap only after four billion moves during one call.
pub(crate) const NOTED: u64 = u32::MAX as u64;

pub(crate) struct Pace {
    /// The interval in nanoseconds: 0, or a value from `initial` to `max`.
    pub(crate) interval: AtomicU64,
    pub(crate) up: AtomicU64,
    pub(crate) down: AtomicU64,
    pub(crate) turns: Turns,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self { interval: AtomicU64::new(0), up: AtomicU64::new(0), down: AtomicU64::new(0), turns: Turns::new() }
    }

    #[inline]
    pub(crate) fn interval(&self) -> u64 {
        self.interval.load(Ordering::Acquire)
    }

    /// Returns the number of moves up.
    #[inline]
    pub(crate) fn ups(&self) -> u64 {
        self.up.load(Ordering::Acquire) >> UPS
    }

    /// Returns the number of moves down.
    #[inline]
    pub(crate) fn downs(&self) -> u64 {
        self.down.load(Ordering::Acquire) >> DOWNS
    }

    /// Returns the note for a call sent now, which holds the numbers of previous moves.
    #[inline]
    pub(crate) fn note(&self) -> u64 {
        (self.ups() & NOTED) << 32 | self.downs() & NOTED
    }

    /// Records that a call was refused.
    pub(crate) fn refused(&self, note: u64, rule: &Rule, random: &mut dyn Random) {
        let up = self.up.load(Ordering::Acquire);
        if up & MOVING != 0 || (up >> UPS) & NOTED != note >> 32 {
            return;
        }
        // Drawn before the claim, because the caller's generator may panic, which must not leave a claim behind. A move
        // from 0 is not random, and an interval of 0 is still 0 when the claim succeeds.
        let drawn = if self.interval() == 0 { 0 } else { drawn(rule, random) };
        if !replace(&self.up, up, up | MOVING) {
            return;
        }
        self.change(|interval| rule.moved_up(interval, drawn));
        self.down.fetch_and(!RUN, Ordering::AcqRel);
        self.up.fetch_add((1 << UPS) - MOVING, Ordering::AcqRel);
    }

    /// Records that a call has succeeded.
    #[inline]
    pub(crate) fn accepted(&self, note: u64, rule: &Rule, random: &mut dyn Random) {
        if self.interval() != 0 {
            self.accepted_in_time(note, rule, random);
        }
    }

    fn accepted_in_time(&self, note: u64, rule: &Rule, random: &mut dyn Random) {
        loop {
            let down = self.down.load(Ordering::Acquire);
            if down & MOVING != 0 || (down >> DOWNS) & NOTED != note & NOTED {
                return;
            }
            if (down & RUN) + ONE_SUCCESS < u64::from(rule.threshold) * ONE_SUCCESS {
                if replace(&self.down, down, down + ONE_SUCCESS) {
                    return;
                }
                continue;
            }
            let drawn = drawn(rule, random);
            // The claim resets the run to 0, and no thread adds to the run while the claim is held.
            let claimed = (down & !RUN) | MOVING;
            if replace(&self.down, down, claimed) {
                self.change(|interval| rule.moved_down(interval, drawn));
                self.down.fetch_add((1 << DOWNS) - MOVING, Ordering::AcqRel);
                return;
            }
        }
    }

    /// Changes the interval, even if a move in the other direction changes it at the same time.
    fn change(&self, next: impl Fn(u64) -> u64) {
        let mut interval = self.interval.load(Ordering::Acquire);
        while let Err(other) =
            self.interval.compare_exchange(interval, next(interval), Ordering::AcqRel, Ordering::Acquire)
        {
            interval = other;
        }
    }
}

pub(crate) fn replace(word: &AtomicU64, seen: u64, next: u64) -> bool {
    word.compare_exchange(seen, next, Ordering::AcqRel, Ordering::Acquire).is_ok()
}

/// Draws the random bits for a move, if needed.
pub(crate) fn drawn(rule: &Rule, random: &mut dyn Random) -> u64 {
    if rule.draws() { random.next_u64() } else { 0 }
}
