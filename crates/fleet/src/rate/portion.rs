//! The tokens that a process holds for one destination, without a runtime or a store.
//!
//! The inputs are calls that arrive, wait and leave, and the store's answers. The outputs are the calls that may be
//! sent, and the number of tokens to request.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Patience, WaitQueue, WaiterId, Wakers};

use crate::destination::between;
use crate::rate_rule::Rate;

/// The time for which tokens are prefetched, and the minimum time over which demand is measured.
const AHEAD: Duration = Duration::from_millis(200);
const STRETCH: Duration = Duration::from_millis(100);

/// The time after which unspent tokens expire, counted from the request for them.
const LIFETIME: Duration = Duration::from_secs(1);

/// The time for which tokens are reserved for the first calls in the queue, which were woken to take them.
const GRACE: Duration = Duration::from_millis(75);

/// The additional time after which a waiting call checks its turn, for each call ahead.
const PER_CALL_AHEAD: Duration = Duration::from_millis(1);

/// The range of the delay until the store is asked again, after it granted fewer tokens than requested.
const SCARCE: (Duration, Duration) = (Duration::from_millis(75), Duration::from_millis(125));

/// The tokens for one destination, and the calls that wait for them.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) key: Box<str>,
    supply: Mutex<Supply>,
}

#[derive(Debug)]
pub(crate) struct Supply {
    tokens: u32,
    expire_at: Duration,
    /// The time at which the calls that the tokens suffice for were last woken.
    offered_at: Duration,
    /// The number of tokens to hold after an answer, in addition to those for waiting calls.
    size: u32,
    /// The time of the last request, and the number of tokens taken since then.
    asked_at: Duration,
    taken: u32,
    is_asking: bool,
    ask_after: Duration,
    pub(crate) queue: WaitQueue,
}

impl Portion {
    pub(crate) fn new(key: Box<str>, patience: Patience) -> Self {
        let supply = Supply {
            tokens: 0,
            expire_at: Duration::ZERO,
            offered_at: Duration::ZERO,
            size: 1,
            asked_at: Duration::ZERO,
            taken: 0,
            is_asking: false,
            ask_after: Duration::ZERO,
            queue: WaitQueue::new(patience),
        };
        Self { key, supply: Mutex::new(supply) }
    }

    pub(crate) fn supply(&self) -> MutexGuard<'_, Supply> {
        self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `true` if dropping this value at `now` would lose nothing.
    pub(crate) fn is_idle(&self, now: Duration) -> bool {
        let mut supply = self.supply();
        !supply.is_asking(now) && supply.queue.is_empty() && supply.ask_after <= now && supply.tokens(now) == 0
    }
}

impl Supply {
    /// Takes a token for a new call. Returns `false` if there is none, or if other calls are waiting.
    pub(crate) fn take(&mut self, now: Duration) -> bool {
        self.queue.is_empty() && self.take_one(now)
    }

    /// Takes a token for a waiting call and removes the call, unless the tokens are for the calls ahead. The wakers
    /// wake the calls that are now concerned.
    ///
    /// Calls ahead that have not taken their tokens after [`GRACE`] are not being polled, so they lose their turn.
    pub(crate) fn take_turn(&mut self, waiter: WaiterId, now: Duration) -> Option<(Wakers, Vec<Waker>)> {
        let ahead = self.queue.position_of(waiter)?;
        let suffices = usize::try_from(self.tokens(now)).is_ok_and(|tokens| tokens > ahead);
        let has_turn = suffices || self.passed_over_at(ahead) <= now;
        (has_turn && self.take_one(now)).then(|| {
            let left = self.queue.leave(waiter);
            // The calls ahead were woken before. The next one behind may have to ask the store in their place.
            let next = if ahead == 0 { Vec::new() } else { self.queue.first_wakers(1) };
            (left, next)
        })
    }

    /// Returns the time at which a call may take the tokens that the calls ahead have left.
    fn passed_over_at(&self, ahead: usize) -> Duration {
        self.offered_at.saturating_add(GRACE).saturating_add(delay_behind(ahead))
    }

    /// Removes the first call if its wait has ended. It is not being polled.
    pub(crate) fn remove_late(&mut self, now: Duration) -> Option<Wakers> {
        self.queue.late(now).map(|late| self.queue.leave(late))
    }

    fn take_one(&mut self, now: Duration) -> bool {
        let has_one = self.tokens(now) > 0;
        if has_one {
            self.tokens -= 1;
            self.taken = self.taken.saturating_add(1);
        }
        has_one
    }

    /// Puts back the token of a call that was not sent.
    pub(crate) fn give_back(&mut self, now: Duration) -> Vec<Waker> {
        if now < self.expire_at {
            self.tokens += 1;
            self.taken = self.taken.saturating_sub(1);
        }
        self.wakers_with_turn(now)
    }

    /// Takes the wakers of the calls that the tokens suffice for, and at least one.
    fn wakers_with_turn(&mut self, now: Duration) -> Vec<Waker> {
        self.offered_at = now;
        let tokens = self.tokens(now).max(1);
        self.queue.first_wakers(usize::try_from(tokens).unwrap_or(usize::MAX))
    }

    /// Returns the time at which a waiting call checks its turn again, unless it is woken earlier. The first call then
    /// asks the store. Later ones check later, in case the calls ahead are not being polled.
    pub(crate) fn next_look(&mut self, waiter: WaiterId, now: Duration) -> Duration {
        let ahead = self.queue.position_of(waiter).unwrap_or(0);
        let ask_at = if self.is_asking(now) { self.asked_at + LIFETIME } else { self.ask_after };
        let look = match ahead {
            0 => ask_at,
            _ if self.tokens(now) > 0 => self.passed_over_at(ahead),
            _ => ask_at.max(now).saturating_add(delay_behind(ahead)),
        };
        look.min(self.queue.waits_until(waiter))
    }

    /// Returns `true` while the store's answer is expected. An answer that takes longer, for example because the asking
    /// runtime is idle, is not waited for.
    fn is_asking(&self, now: Duration) -> bool {
        self.is_asking && now < self.asked_at + LIFETIME
    }

    /// Returns the number of tokens to request, if the store should be asked now, and records the request. A refused
    /// call asks on behalf of the next call.
    ///
    /// A process that uses fewer than ten tokens per second asks once per call. A busier process asks when half of its
    /// usage per [`AHEAD`] is left, so that no call waits for an answer.
    pub(crate) fn question(&mut self, rate: Rate, was_refused: bool, now: Duration) -> Option<u32> {
        let held = self.tokens(now);
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        let is_low = held < self.size / 2 || waiting > held || was_refused;
        if self.is_asking(now) || now < self.ask_after || !is_low {
            return None;
        }
        // A process never requests more tokens at once than the rate adds in an eighth of a second.
        let most = (rate.per_second() / 8).saturating_add(1);
        let stretch = now.saturating_sub(self.asked_at).clamp(STRETCH, Duration::from_secs(60));
        let used = u128::from(self.taken) * AHEAD.as_millis();
        self.size = u32::try_from(used.div_ceil(stretch.as_millis())).unwrap_or(most).clamp(1, most);
        (self.is_asking, self.asked_at, self.taken) = (true, now, 0);
        // A quiet process does not prefetch tokens, but requests only those for its waiting calls.
        let ahead = if self.size > 1 { self.size } else { 0 };
        Some(waiting.saturating_sub(held).saturating_add(ahead).clamp(1, most))
    }

    /// Records the end of a request: the number of tokens granted, or `None` if there was no answer.
    pub(crate) fn answer(&mut self, granted: Option<u32>, wanted: u32, now: Duration, random: u64) -> Vec<Waker> {
        self.is_asking = false;
        let granted = granted.unwrap_or(0);
        self.tokens = self.tokens(now).saturating_add(granted.min(wanted));
        self.expire_at = self.asked_at + LIFETIME;
        self.ask_after = if granted < wanted { now + between(SCARCE.0, SCARCE.1, random) } else { now };
        self.wakers_with_turn(now)
    }

    /// Returns the tokens that have not expired.
    fn tokens(&mut self, now: Duration) -> u32 {
        if now >= self.expire_at {
            self.tokens = 0;
        }
        self.tokens
    }
}

/// Returns the delay of a call's checks, by the number of calls ahead.
fn delay_behind(ahead: usize) -> Duration {
    PER_CALL_AHEAD.saturating_mul(u32::try_from(ahead).unwrap_or(u32::MAX))
}
