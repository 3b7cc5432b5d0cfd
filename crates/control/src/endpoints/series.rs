//! A series of ejections of one endpoint for one kind of reason. Each lasts twice as long as the one before.

use std::time::Duration;

use reattempt_core::Random;

/// The time in service after which one of the earlier ejections is forgiven, in milliseconds.
const FORGIVEN: u64 = 30_000;
/// An ejection is lengthened by up to a fifth of its time, so that clients do not return at the same time.
const SPREAD: u64 = 5;

/// A random number drawn before the lock was taken, because the generator belongs to the caller.
#[derive(Clone, Copy)]
pub(crate) struct Drawn(pub(crate) u64);

impl Random for Drawn {
    fn next_u64(&mut self) -> u64 {
        self.0
    }
}

impl Drawn {
    /// Returns the random part of an ejection of this many milliseconds.
    pub(crate) fn spread(mut self, lasts: u64) -> u64 {
        let spread = self.between(Duration::ZERO, Duration::from_millis(lasts / SPREAD));
        u64::try_from(spread.as_millis()).unwrap_or(0)
    }
}

/// A series of ejections. Times are in milliseconds.
pub(crate) struct Series {
    shortest: u64,
    longest: u64,
    /// The time at which the current ejection ends.
    pub(crate) until: Option<u64>,
    /// The number of ejections that were not forgiven.
    strikes: u32,
    /// The time at which the last ejection ended, or 0 if there was none.
    pub(crate) since: u64,
}

impl Series {
    /// The ejections of an endpoint that accepts no connection. An attempt costs little there, because it moves on, so
    /// a restarted endpoint is found early.
    pub(crate) const UNREACHABLE: Self = Self::of(1_000, 10_000);

    /// The shortest and the longest ejection, in milliseconds.
    pub(crate) const fn of(shortest: u64, longest: u64) -> Self {
        Self { shortest, longest, until: None, strikes: 0, since: 0 }
    }

    /// Begins an ejection because of an attempt that was sent at `sent`. Returns `false` if that was before the last
    /// ejection ended.
    pub(crate) fn begin(&mut self, sent: u64, now: u64, drawn: Drawn) -> bool {
        if self.since > sent {
            return false;
        }
        let forgiven = now.saturating_sub(self.since) / FORGIVEN;
        self.strikes = self.strikes.saturating_sub(u32::try_from(forgiven).unwrap_or(u32::MAX));
        let lasts = self.longest.min(self.shortest.saturating_mul(1 << self.strikes.min(63)));
        self.strikes = self.strikes.saturating_add(1);
        self.until = Some(now.saturating_add(lasts + drawn.spread(lasts)));
        true
    }

    /// Ends the ejection.
    pub(crate) fn end(&mut self, at: u64) {
        (self.until, self.since) = (None, at);
    }
}
