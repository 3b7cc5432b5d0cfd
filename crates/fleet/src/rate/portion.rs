//! The tokens that a process holds for one destination, without a runtime or a store.
//!
//! The inputs are calls that arrive, wait and leave, and the store's answers. The outputs are the calls that may be
//! sent, and the number of tokens to request.
//!
//! A process is *alone* with a destination while the store fails, is late, or grants nobody a token. The process's own
//! limit then admits the calls, in the same queue. What it admits is *owed*: the store's next tokens pay for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_control::{Patience, RateLimit, RateTicket, WaitQueue, WaiterId, Wakers};
use reattempt_core::guard::{Admit, Arrival, Guard};
use reattempt_core::snapshot::Part;

use super::outage::Outage;
use crate::destination::between;
use crate::rate_rule::{Rate, Taken};

/// The time for which tokens are prefetched, and the minimum time over which demand is measured.
const AHEAD: Duration = Duration::from_millis(200);
const STRETCH: Duration = Duration::from_millis(100);

/// The time after which unspent tokens expire, counted from the request for them.
const LIFETIME: Duration = Duration::from_secs(1);

/// The time after which a missing answer is late, and the process is alone.
// L-3
pub(super) const PATIENCE: Duration = Duration::from_millis(50);

/// The time without a token for any process after which a store that answers is treated as failing.
const GRANTS_NOBODY: Duration = Duration::from_secs(10);

/// The time for which tokens are reserved for the first calls in the queue, which were woken to take them.
const GRACE: Duration = Duration::from_millis(75);

/// The additional time after which a waiting call checks its turn, for each call ahead.
const PER_CALL_AHEAD: Duration = Duration::from_millis(1);

/// The range of the delay until the store is asked again, after it granted fewer tokens than requested.
const SCARCE: (Duration, Duration) = (Duration::from_millis(75), Duration::from_millis(125));

/// The tokens for one destination, and the calls that wait for them.
#[derive(Debug)]
pub(crate) struct Portion {
    pub(crate) name: Box<str>,
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
    /// The time of the last call with a token of the store, until the own limit has been told of it.
    took_at: Option<Duration>,
    /// The time from which the own limit may admit a call.
    pub(crate) alone_at: Duration,
    /// The calls that the own limit has admitted and that the store's tokens have not paid for, and their last time.
    owed: u32,
    owed_at: Duration,
    /// `false` if more than the burst of the own limit was owed at the last request. Store and own limit together would
    /// otherwise exceed the rate if each answer is late.
    may_owe_more: bool,
    /// The burst of the own limit.
    own_burst: u32,
    /// The time in which the store's bucket fills, after which nothing is owed.
    fills_in: Duration,
    /// The time of the last grant that an empty answer named, and when this process first saw it.
    empty: Option<(u64, Duration)>,
    grants_nobody: bool,
    /// `true` if the observer was told that the process is alone.
    pub(crate) is_reported: bool,
    pub(crate) queue: WaitQueue,
}

impl Portion {
    pub(crate) fn new(name: &str, key: Box<str>, rate: Rate, patience: Patience) -> Self {
        let supply = Supply {
            tokens: 0,
            expire_at: Duration::ZERO,
            offered_at: Duration::ZERO,
            size: 1,
            asked_at: Duration::ZERO,
            taken: 0,
            is_asking: false,
            ask_after: Duration::ZERO,
            took_at: None,
            alone_at: Duration::ZERO,
            owed: 0,
            owed_at: Duration::ZERO,
            may_owe_more: true,
            own_burst: u32::MAX,
            fills_in: LIFETIME.max(Duration::from_secs(rate.burst().into()) / rate.per_second()),
            empty: None,
            grants_nobody: false,
            is_reported: false,
            queue: WaitQueue::new(patience),
        };
        Self { name: name.into(), key, supply: Mutex::new(supply) }
    }

    pub(crate) fn supply(&self) -> MutexGuard<'_, Supply> {
        self.supply.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn inspect(&self, now: Duration) -> Part {
        let (tokens, waiting) = {
            let mut supply = self.supply();
            (supply.tokens(now), supply.queue.len())
        };
        Part::new("destination", &*self.name).field("tokens", tokens).field("waiting", waiting)
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
            self.took_at = Some(now);
        }
        has_one
    }

    /// Returns `true` if the own limit admits calls: during an outage of the store, while its answer is late, or if it
    /// grants nobody a token.
    // L-1
    pub(crate) fn is_alone(&self, outage: &Outage, now: Duration) -> bool {
        let is_late = self.is_asking(now) && now >= self.asked_at + PATIENCE;
        is_late && self.may_owe_more || self.grants_nobody || outage.is_on()
    }

    /// Returns `true` if a waiting call may ask the own limit. Calls ahead that have not asked it after [`GRACE`] are
    /// not being polled.
    pub(crate) fn has_turn_alone(&self, waiter: WaiterId, now: Duration) -> bool {
        let ahead = self.queue.position_of(waiter);
        ahead.is_some_and(|ahead| ahead == 0 || self.passed_over_alone_at(ahead) <= now)
    }

    fn passed_over_alone_at(&self, ahead: usize) -> Duration {
        self.alone_at.saturating_add(GRACE).saturating_add(delay_behind(ahead))
    }

    /// Takes a token of the process's own limit for a call. Returns `None` if there is none.
    ///
    /// The own limit begins empty at the last call with a token of the store.
    // L-2
    pub(crate) fn take_alone(&mut self, own: &RateLimit, arrival: &Arrival<'_>) -> Option<RateTicket> {
        if let Some(last) = self.took_at.take() {
            // Takes all whole tokens: a power of two at a time.
            for bit in (0..u32::BITS).rev() {
                own.allow_n_at(arrival.destination, 1 << bit, last);
            }
        }
        match own.admit(&arrival.impatient()) {
            Admit::Admitted(ticket) => {
                self.alone_at = arrival.now;
                self.owed = self.owed(arrival.now).saturating_add(1);
                self.owed_at = arrival.now;
                self.taken = self.taken.saturating_add(1);
                Some(ticket)
            }
            Admit::Refused(refused) => {
                self.alone_at = arrival.now + refused.wait().unwrap_or(LIFETIME);
                None
            }
            // An impatient call never waits.
            Admit::Waiting(_) => None,
        }
    }

    /// Returns the calls that the store's next tokens pay for.
    fn owed(&mut self, now: Duration) -> u32 {
        if now >= self.owed_at + self.fills_in {
            self.owed = 0;
        }
        self.owed
    }

    /// Records that a call with a token of the own limit was not sent. The first call may then have its turn.
    pub(crate) fn give_back_alone(&mut self, now: Duration) -> Vec<Waker> {
        self.owed = self.owed.saturating_sub(1);
        self.taken = self.taken.saturating_sub(1);
        self.alone_at = self.alone_at.min(now);
        self.queue.first_wakers(1)
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
    /// asks the store or the own limit. Later ones check later, in case the calls ahead are not being polled.
    pub(crate) fn next_look(&mut self, waiter: WaiterId, outage: &Outage, now: Duration) -> Duration {
        let ahead = self.queue.position_of(waiter).unwrap_or(0);
        let is_asking = self.is_asking(now);
        let ask_at = if is_asking { self.asked_at + LIFETIME } else { self.ask_after.max(outage.ask_at()) };
        // While asking, the process may soon be alone.
        let may_be_alone = self.is_alone(outage, now) || is_asking && self.may_owe_more;
        let first_look = if may_be_alone { ask_at.min(self.alone_at) } else { ask_at };
        let look = match ahead {
            0 => first_look,
            _ if self.tokens(now) > 0 => self.passed_over_at(ahead),
            _ if may_be_alone => {
                let asks = ask_at.saturating_add(delay_behind(ahead));
                self.passed_over_alone_at(ahead).min(asks).max(now.saturating_add(delay_behind(ahead)))
            }
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
    pub(crate) fn question(&mut self, rate: Rate, was_refused: bool, outage: &Outage, now: Duration) -> Option<u32> {
        let held = self.tokens(now);
        let waiting = u32::try_from(self.queue.len()).unwrap_or(u32::MAX);
        let is_low = held < self.size / 2 || waiting > held || was_refused;
        if self.is_asking(now) || now < self.ask_after || !is_low || !outage.may_ask(now) {
            return None;
        }
        // A process never requests more tokens at once than the rate adds in an eighth of a second.
        let most = (rate.per_second() / 8).saturating_add(1);
        let stretch = now.saturating_sub(self.asked_at).clamp(STRETCH, Duration::from_secs(60));
        let used = u128::from(self.taken) * AHEAD.as_millis();
        self.size = u32::try_from(used.div_ceil(stretch.as_millis())).unwrap_or(most).clamp(1, most);
        if !self.is_alone(outage, now) {
            self.alone_at = now + PATIENCE;
        }
        (self.is_asking, self.asked_at, self.taken) = (true, now, 0);
        self.may_owe_more = self.owed(now) <= self.own_burst;
        // A quiet process does not prefetch tokens, but requests only those for its waiting calls.
        let ahead = if self.size > 1 { self.size } else { 0 };
        let wanted = waiting.saturating_sub(held).saturating_add(ahead).saturating_add(self.owed(now));
        Some(wanted.clamp(1, most))
    }

    /// Records the end of a request: the store's answer, or `None` if there was none in a second.
    ///
    /// The tokens pay for owed calls first. A store that failed saved at most a burst meanwhile, so no more than
    /// `own_burst`, this process's part of it, remains owed.
    pub(crate) fn answer(
        &mut self,
        answer: Option<Taken>,
        wanted: u32,
        own_burst: u32,
        now: Duration,
        random: u64,
    ) -> Vec<Waker> {
        (self.is_asking, self.own_burst) = (false, own_burst);
        let granted = answer.map_or(0, |taken| taken.granted.min(wanted));
        match answer {
            Some(Taken { granted: 0, granted_at }) => {
                let known = self.empty.filter(|(known, _)| *known == granted_at);
                let (_, since) = *self.empty.insert(known.unwrap_or((granted_at, now)));
                self.grants_nobody = now >= since + GRANTS_NOBODY;
            }
            _ => (self.empty, self.grants_nobody) = (None, false),
        }
        if answer.is_none() || self.grants_nobody {
            self.owed = self.owed.min(own_burst);
        }
        let paid = self.owed(now).min(granted);
        self.owed -= paid;
        self.tokens = self.tokens(now).saturating_add(granted - paid);
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
