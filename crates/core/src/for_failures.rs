//! A schedule for each kind of failure.
//!
//! Each schedule counts only its own failures, so failures of one kind do not lengthen another kind's delays.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::{Delays, Failure, Limits, NextRetry, Random, Schedule, SentAt, Warning};

/// One schedule for matching failures and another for the rest, created by
/// [`ScheduleExt::for_failures`](crate::ScheduleExt::for_failures).
///
/// Each schedule counts its own failures, from 0, and receives the delay after its own last failure. If the matching
/// schedule has ended, the call is not retried.
///
/// Both schedules record every success, but only the selected schedule records a failure. Both receive the same
/// [`SentAt`], so at most one of them may use it.
#[derive(Clone, Copy)]
pub struct ForFailures<F, A, B> {
    matches: F,
    matching: A,
    rest: B,
}

/// The per-call state of [`ForFailures`].
#[derive(Clone, Copy)]
pub struct OnFailureDelays<F, A, B> {
    matches: F,
    matching: Counted<A>,
    rest: Counted<B>,
    /// `true` if the last delay came from `matching`.
    matched: bool,
}

/// The delays of one kind of failure.
#[derive(Debug, Clone, Copy)]
struct Counted<D> {
    delays: D,
    /// The number of failures of this kind so far.
    number: u32,
    /// The delay used after the last of them.
    previous: Option<Duration>,
}

impl<F, A, B> ForFailures<F, A, B> {
    pub(crate) const fn new(matches: F, matching: A, rest: B) -> Self {
        Self { matches, matching, rest }
    }
}

impl<F, A, B> Schedule for ForFailures<F, A, B>
where
    F: Fn(&Failure) -> bool + Clone + Send + Sync + 'static,
    A: Schedule,
    B: Schedule,
{
    type Delays = OnFailureDelays<F, A::Delays, B::Delays>;

    fn delays(&self) -> Self::Delays {
        OnFailureDelays {
            matches: self.matches.clone(),
            matching: Counted::new(self.matching.delays()),
            rest: Counted::new(self.rest.delays()),
            matched: false,
        }
    }

    fn on_send(&self) -> SentAt {
        // The schedule that does not use `SentAt` returns 0.
        SentAt(self.matching.on_send().0.max(self.rest.on_send().0))
    }

    fn on_success(&self, sent_at: SentAt, random: &mut dyn Random) {
        self.matching.on_success(sent_at, random);
        self.rest.on_success(sent_at, random);
    }

    fn on_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        if (self.matches)(failure) {
            self.matching.on_failure(sent_at, failure, random);
        } else {
            self.rest.on_failure(sent_at, failure, random);
        }
    }

    fn is_stateless(&self) -> bool {
        self.matching.is_stateless() && self.rest.is_stateless()
    }

    fn validate(&self, limits: &Limits) -> Vec<Warning> {
        [self.matching.validate(limits), self.rest.validate(limits)].concat()
    }
}

impl<F, A, B> Delays for OnFailureDelays<F, A, B>
where
    F: Fn(&Failure) -> bool,
    A: Delays,
    B: Delays,
{
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        // The delay actually used, which may be the server's, is recorded for the schedule of that failure.
        let last = if self.matched { &mut self.matching.previous } else { &mut self.rest.previous };
        *last = retry.previous;
        self.matched = (self.matches)(&retry.failure);
        if self.matched { self.matching.next_delay(retry, random) } else { self.rest.next_delay(retry, random) }
    }

    fn is_shared(&self) -> bool {
        match self.matched {
            true => self.matching.delays.is_shared(),
            false => self.rest.delays.is_shared(),
        }
    }
}

impl<D: Delays> Counted<D> {
    fn new(delays: D) -> Self {
        Self { delays, number: 0, previous: None }
    }

    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        let own = NextRetry { number: self.number, previous: self.previous, ..*retry };
        self.number = self.number.saturating_add(1);
        self.delays.next_delay(&own, random)
    }
}

// Not derived, because `matches` is usually a closure.
impl<F, A: fmt::Debug, B: fmt::Debug> fmt::Debug for ForFailures<F, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ForFailures")
            .field("matching", &self.matching)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}

impl<F, A: fmt::Debug, B: fmt::Debug> fmt::Debug for OnFailureDelays<F, A, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnFailureDelays")
            .field("matching", &self.matching)
            .field("rest", &self.rest)
            .finish_non_exhaustive()
    }
}
