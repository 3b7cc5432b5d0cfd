//! A throttle's lock-free token bucket, with the tokens and settings in one word.
//!
//! Each change, even to the settings, is a single compare-and-swap. Tokens and settings are thus always consistent.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering};

use super::RetryThrottling;

/// One token, in thousandths.
// THR-10
const TOKEN: u64 = 1000;

/// Each of the three numbers of a [`Level`] is at most 1000 tokens, which fits in 20 bits.
const BITS: u32 = 20;
const MASK: u64 = (1 << BITS) - 1;

/// A packed [`Level`]. It guards no other memory, so relaxed accesses suffice: all threads see the changes to a single
/// word in the same order.
pub(super) struct Bucket {
    word: AtomicU64,
}

/// The unpacked word, in thousandths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Level {
    tokens: u64,
    /// The maximum number of tokens; 0 if nothing is throttled.
    max: u64,
    /// The number of tokens added per success, at most `max`.
    ratio: u64,
}

impl Level {
    const OFF: Self = Self { tokens: 0, max: 0, ratio: 0 };

    fn full(settings: Option<RetryThrottling>) -> Self {
        settings.map_or(Self::OFF, |settings| {
            let max = u64::from(settings.max_tokens_thousandths());
            let ratio = u64::from(settings.token_ratio_thousandths()).min(max);
            Self { tokens: max, max, ratio }
        })
    }

    #[inline]
    fn unpack(word: u64) -> Self {
        Self { tokens: word & MASK, max: (word >> BITS) & MASK, ratio: word >> (2 * BITS) }
    }

    #[inline]
    fn pack(self) -> u64 {
        self.tokens | (self.max << BITS) | (self.ratio << (2 * BITS))
    }

    /// Returns `true` if at most half of the tokens are left.
    // THR-5
    fn is_throttled(self) -> bool {
        self.max > 0 && self.tokens * 2 <= self.max
    }

    fn debited(self) -> Self {
        Self { tokens: self.tokens.saturating_sub(TOKEN), ..self }
    }

    #[inline]
    fn credited(self) -> Self {
        Self { tokens: (self.tokens + self.ratio).min(self.max), ..self }
    }

    /// Returns the same fraction of `full`, rounded down. Without previous settings, the bucket is full.
    fn carried_over(self, full: Self) -> Self {
        let share = (self.tokens * full.max).checked_div(self.max);
        Self { tokens: share.unwrap_or(full.max), ..full }
    }
}

impl Bucket {
    pub(super) fn new(settings: Option<RetryThrottling>) -> Self {
        Self { word: AtomicU64::new(Level::full(settings).pack()) }
    }

    /// Takes one token, or whatever is left if less. Returns `true` if retries are throttled afterwards.
    pub(super) fn debit(&self) -> bool {
        self.change(Level::debited).is_throttled()
    }

    /// Adds the tokens for a success. A full bucket is not written.
    #[inline]
    pub(super) fn credit(&self) {
        self.change(Level::credited);
    }

    pub(super) fn configure(&self, settings: Option<RetryThrottling>) {
        let full = Level::full(settings);
        self.change(|level| level.carried_over(full));
    }

    pub(super) fn is_throttled(&self) -> bool {
        self.level().is_throttled()
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        let level = self.level();
        level.tokens == level.max
    }

    pub(super) fn tokens(&self) -> Option<u32> {
        let level = self.level();
        (level.max > 0).then_some(level.tokens)?.try_into().ok()
    }

    #[inline]
    fn level(&self) -> Level {
        Level::unpack(self.word.load(Ordering::Relaxed))
    }

    /// Changes the level and returns the new one.
    #[inline]
    fn change(&self, change: impl Fn(Level) -> Level) -> Level {
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let level = change(Level::unpack(word));
            let next = level.pack();
            if next == word {
                return level;
            }
            match self.word.compare_exchange_weak(word, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return level,
                Err(changed) => word = changed,
            }
        }
    }
}
