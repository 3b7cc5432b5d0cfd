//! The counts of the last two seconds, and the advice to refused clients that follows from them.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reattempt_core::Random;
use reattempt_core::guard::Refused;

use crate::call::random::CallRandom;
use crate::guard::now;

const SECOND: Duration = Duration::from_secs(1);
const SHORTEST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(30);
/// The fewest arrivals for which the share of retries counts.
const ENOUGH: u32 = 20;

/// The advice to a client whose call is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The time after which the client may retry.
    pub(crate) after: Duration,
    /// `true` if the client must not retry.
    pub(crate) stop: bool,
}

/// The counts of the calls to one server, in two buckets of a second.
pub struct Gauge(Mutex<State>);

struct State {
    /// The start of the older bucket.
    since: Duration,
    /// The start of the current bucket.
    began: Duration,
    current: Counts,
    before: Counts,
    random: CallRandom,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    arrived: u32,
    retries: u32,
    ended: u32,
    refused: u32,
}

impl Gauge {
    pub(super) fn new() -> Self {
        Self(Mutex::new(State {
            since: now(),
            began: now(),
            current: Counts::default(),
            before: Counts::default(),
            random: CallRandom::unseeded(None),
        }))
    }

    pub(super) fn arrived(&self, retry: bool) {
        let mut state = self.lock();
        state.current.arrived += 1;
        state.current.retries += u32::from(retry);
    }

    pub(crate) fn ended(&self) {
        self.lock().current.ended += 1;
    }

    pub(crate) fn advise(&self, refused: &Refused) -> Advice {
        let mut state = self.lock();
        state.current.refused += 1;
        let sum = |count: fn(&Counts) -> u32| count(&state.before) + count(&state.current);
        let (arrived, retries) = (sum(|counts| counts.arrived), sum(|counts| counts.retries));
        let (ended, waiting) = (sum(|counts| counts.ended), sum(|counts| counts.refused));
        let span = now().saturating_sub(state.since);
        let drained = span.saturating_mul(waiting).checked_div(ended).unwrap_or(SECOND);
        let wait = refused.wait().unwrap_or(drained).clamp(SHORTEST, LONGEST);
        let after = wait + state.random.between(Duration::ZERO, wait);
        Advice { after, stop: arrived >= ENOUGH && retries > arrived / 2 }
    }

    /// Locks the counts, and drops those that are too old.
    fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = now();
        let open = now.saturating_sub(state.began);
        if open >= SECOND {
            let recent = open < 2 * SECOND;
            (state.before, state.since) = match recent {
                true => (state.current, state.began),
                false => (Counts::default(), now),
            };
            (state.current, state.began) = (Counts::default(), now);
        }
        state
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        f.debug_struct("Gauge")
            .field("current", &state.current)
            .field("before", &state.before)
            .finish()
    }
}
