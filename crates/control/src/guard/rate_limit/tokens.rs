//! A destination's tokens, as plain integers: millionths of a token, and nanoseconds.
//!
//! Every take advances a *position*, and a booking stores the position just after its tokens. The two positions
//! determine how many tokens have been taken since, and when the booking's tokens will have been added.
//!
//! A reservation keeps its time. If tokens were returned while a later reservation is pending, they could be used
//! twice: by a new call, and by that reservation. Three rules prevent this:
//!
//! | returned by | tokens returned |
//! |---|---|
//! | a reservation | its tokens, minus those taken after them while a later reservation is pending |
//! | a waiting call | its token, unless a reservation behind it is pending |
//! | an admitted call | its token, to the extent that the bucket has had room for it since, unless a reservation is pending |

use std::collections::VecDeque;
use std::time::Duration;

use super::super::time::nanos;
use super::limit::{Limit, TOKEN};

/// A token bucket. A negative balance means that tokens were taken before time has added them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    balance: i64,
    /// The capacity: the burst. Meaningless at an infinite rate.
    capacity: i64,
    /// The latest time seen, because time must not go backwards.
    now: u64,
    /// The current rate: `limit`, or a lower one derived from the server's responses.
    rate: Limit,
    /// The remainder of the last division by the rate's period.
    rest: u64,
    /// The time at which `limit` applies again, or the maximum if it already does.
    follows_until: u64,
    /// The number of tokens taken so far, which wraps.
    position: u64,
    /// The number of tokens added so far, including those that did not fit, which wraps.
    inflow: u64,
    /// The time of the last pending reservation.
    promised_until: u64,
    pub(crate) limit: Limit,
    pub(crate) burst: u64,
}

/// Tokens taken immediately or in advance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Booking {
    /// 0 if the rate was infinite.
    pub(crate) cost: u64,
    /// The position just after the tokens.
    pub(crate) end: u64,
    /// The time at which the tokens are available.
    pub(crate) at: u64,
    /// The time of the last reservation before this one.
    before: u64,
}

/// A reason why tokens cannot be booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbookable {
    /// More tokens than the bucket can hold.
    TooMany,
    /// The tokens would only be available at this time, or never.
    TooLate(Option<u64>),
}

impl Tokens {
    /// Creates a full bucket.
    pub(crate) fn new(limit: Limit, burst: u64) -> Self {
        Self {
            balance: signed(burst),
            capacity: capacity(limit, burst),
            now: 0,
            rate: limit,
            rest: 0,
            follows_until: NEVER,
            position: 0,
            inflow: 0,
            promised_until: 0,
            limit,
            burst,
        }
    }

    /// Adds the tokens for the time up to `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        if now >= self.follows_until {
            self.stop_following();
        }
        self.mint(now);
    }

    #[cold]
    fn stop_following(&mut self) {
        self.mint(self.follows_until);
        (self.rate, self.rest, self.follows_until) = (self.limit, 0, NEVER);
    }

    #[inline]
    fn mint(&mut self, now: u64) {
        if now <= self.now {
            return;
        }
        let (minted, rest) = self.rate.minted(now - self.now, self.rest);
        self.now = now;
        self.inflow = self.inflow.wrapping_add(minted);
        // Tokens that do not fit are lost, including the fraction of a millionth.
        let room = self.capacity.wrapping_sub(self.balance).cast_unsigned();
        (self.balance, self.rest) =
            if minted < room { (self.balance.wrapping_add_unsigned(minted), rest) } else { (self.capacity, 0) };
    }

    /// Takes `cost` millionths if they are available now.
    #[inline]
    pub(crate) fn take(&mut self, cost: u64) -> bool {
        if self.rate.is_infinite() {
            return true;
        }
        let tokens = signed(cost);
        if self.balance < tokens {
            return false;
        }
        self.balance -= tokens;
        self.position = self.position.wrapping_add(cost);
        true
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn balance(&self) -> i64 {
        self.balance
    }

    /// Returns `true` if nothing limits the rate.
    pub(crate) fn is_infinite(&self) -> bool {
        self.rate.is_infinite()
    }

    /// Returns `true` if the server's responses have lowered the rate.
    pub(crate) fn follows(&self) -> bool {
        self.follows_until != NEVER
    }

    /// Returns `true` if a new bucket would behave the same.
    pub(crate) fn is_initial(&self) -> bool {
        self.is_infinite() || !self.follows() && self.balance == self.capacity
    }

    /// Returns `true` if the destination's own rate would have filled the bucket by now, however empty it was.
    pub(crate) fn is_full_without_quota(&self, now: u64) -> bool {
        let missing = self.burst.saturating_add(self.balance.min(0).unsigned_abs());
        let full = self.limit.time_for(missing, 0).and_then(|time| self.now.checked_add(time));
        self.follows() && full.is_some_and(|full| full <= now)
    }

    /// Takes `cost` millionths that are available by `latest`.
    #[inline]
    pub(crate) fn book(&mut self, cost: u64, latest: u64) -> Result<Booking, Unbookable> {
        if self.is_infinite() {
            return Ok(self.booking(0, self.now));
        }
        if signed(cost) > self.capacity {
            return Err(Unbookable::TooMany);
        }
        let after = self.balance.checked_sub(signed(cost)).ok_or(Unbookable::TooLate(None))?;
        let mut at = self.now;
        if after < 0 {
            at = match self.due(after.unsigned_abs()) {
                Some(at) if at <= latest => at,
                at => return Err(Unbookable::TooLate(at)),
            };
        }
        self.balance = after;
        self.position = self.position.wrapping_add(cost);
        Ok(self.booking(cost, at))
    }

    fn booking(&self, cost: u64, at: u64) -> Booking {
        Booking { cost, end: self.position, at, before: self.promised_until }
    }

    /// Guarantees the time of a booking, even if earlier bookings are cancelled.
    pub(crate) fn promise(&mut self, booking: &Booking) {
        self.promised_until = self.promised_until.max(booking.at);
    }

    /// Returns `true` if a reservation is pending.
    fn promises(&self) -> bool {
        self.promised_until > self.now
    }

    /// Returns the time at which the tokens up to position `end` have been added, or `None` if never.
    pub(crate) fn due_for(&self, end: u64) -> Option<u64> {
        if self.is_infinite() {
            return Some(self.now);
        }
        let missing = signed(self.taken_after(end)).saturating_add(self.balance).min(0);
        self.due(missing.unsigned_abs())
    }

    fn due(&self, missing: u64) -> Option<u64> {
        let due = self.rate.time_for(missing, self.rest).and_then(|time| self.now.checked_add(time));
        if !self.follows() || due.is_some_and(|due| due <= self.follows_until) {
            return due;
        }
        let (minted, _) = self.rate.minted(self.follows_until - self.now, self.rest);
        let missing = missing.saturating_sub(minted);
        self.follows_until.checked_add(self.limit.time_for(missing, 0)?)
    }

    /// Returns the tokens taken after position `end`, or 0 if more have been returned since.
    pub(crate) fn taken_after(&self, end: u64) -> u64 {
        let after = self.position.wrapping_sub(end);
        if i64::try_from(after).is_ok() { after } else { 0 }
    }

    /// Cancels a reservation. `waiting` holds the slots of the waiting calls, in order.
    ///
    /// As in x/time/rate, nothing is restored once the reservation's time has passed. Calls waiting behind the tokens
    /// move up.
    pub(crate) fn cancel(&mut self, booking: &Booking, waiting: &mut VecDeque<u64>) {
        // A reservation that was already cancelled must change nothing, not even the time.
        if booking.cost == 0 || booking.at < self.now {
            return;
        }
        let after = self.taken_after(booking.end);
        let behind = waiting.partition_point(|slot| self.taken_after(*slot) >= after);
        let own = TOKEN.saturating_mul((waiting.len() - behind) as u64);
        let built_upon = after.saturating_sub(own);
        let most = booking.cost.min(self.burst);
        // If the rate was raised since the booking, its tokens may already have been added.
        let room = u64::try_from(self.room(waiting.len())).unwrap_or(0);
        if built_upon > 0 && self.promises() {
            // Later reservations keep their positions, so those of earlier calls move.
            let amount = most.saturating_sub(built_upon);
            waiting.range_mut(..behind).for_each(|slot| *slot = slot.wrapping_add(amount));
            self.credit(amount.min(room));
            return;
        }
        if self.promised_until == booking.at {
            self.promised_until = booking.before;
        }
        waiting.range_mut(behind..).for_each(|slot| *slot = slot.wrapping_sub(most));
        self.position = self.position.wrapping_sub(most);
        self.credit(most.min(room));
    }

    /// Returns the token of the last slot, which is not yet due.
    pub(crate) fn withdraw(&mut self, slot: u64) {
        if slot == self.position || !self.promises() {
            self.position = self.position.wrapping_sub(TOKEN);
            self.credit(TOKEN);
        }
    }

    /// Returns the inflow at which the bucket is full, not counting the tokens of `waiting` calls. Tokens taken now may
    /// be returned until then.
    #[inline]
    pub(crate) fn full_at(&self, waiting: usize) -> u64 {
        self.inflow.wrapping_add_signed(self.room(waiting))
    }

    /// Returns the inflow up to which the token of a due slot may be returned.
    pub(crate) fn late_at(&self, slot: u64) -> u64 {
        let since = self.balance.saturating_add_unsigned(self.taken_after(slot));
        self.inflow.wrapping_add(TOKEN).wrapping_sub(since.max(0).cast_unsigned())
    }

    /// Returns the token of an admitted call, leaving room for the tokens of `waiting` calls.
    pub(crate) fn give_back(&mut self, cost: u64, full_at: u64, waiting: usize) {
        if self.promises() {
            return;
        }
        let room = full_at.wrapping_sub(self.inflow).cast_signed().min(self.room(waiting)).max(0);
        let amount = cost.min(room.cast_unsigned());
        self.inflow = self.inflow.wrapping_add(amount);
        self.credit(amount);
    }

    #[inline]
    fn room(&self, waiting: usize) -> i64 {
        let owed = TOKEN.saturating_mul(waiting as u64);
        let held = self.balance.saturating_add_unsigned(owed).max(0);
        signed(self.burst).saturating_sub(held)
    }

    fn credit(&mut self, amount: u64) {
        self.balance = self.balance.saturating_add(signed(amount)).min(signed(self.burst));
    }

    /// Changes the rate and the burst from now on. A lower rate derived from the server's responses still applies.
    pub(crate) fn set(&mut self, limit: Limit, burst: u64) {
        // Tokens taken from a larger bucket may not fit into the smaller one.
        self.inflow = self.inflow.wrapping_add(self.burst.saturating_sub(burst));
        (self.limit, self.burst, self.capacity) = (limit, burst, capacity(limit, burst));
        self.balance = self.balance.min(signed(burst));
        if !self.follows() || limit <= self.rate {
            (self.rate, self.rest, self.follows_until) = (limit, 0, NEVER);
        }
    }

    /// Lowers the rate so that `remaining` millionths last until `until`. If they would last anyway, the destination's
    /// own rate applies. The rate is never lowered below one token per `trial`.
    pub(crate) fn follow(&mut self, remaining: u64, until: u64, trial: Duration) {
        (self.rate, self.rest, self.follows_until) = (self.limit, 0, NEVER);
        let Some(time) = until.checked_sub(self.now).filter(|time| *time > 0) else { return };
        let (minted, _) = self.limit.minted(time, 0);
        let held = self.balance.max(0).unsigned_abs();
        let unlimited = self.limit.is_infinite();
        if !unlimited && held.saturating_add(minted) <= remaining {
            return;
        }
        // One call may proceed immediately, and the others are spread over the remaining time.
        let first = remaining.min(TOKEN);
        let first = if unlimited { first } else { first.min(held) };
        self.balance = self.balance.min(0).saturating_add(signed(first));
        let implied = Limit::ratio(remaining - first, time);
        self.rate = if time > nanos(trial) { implied.max(Limit::every(trial).min(self.limit)) } else { implied };
        self.follows_until = until.min(NEVER - 1);
    }
}

/// Later than every time.
const NEVER: u64 = u64::MAX;

fn capacity(limit: Limit, burst: u64) -> i64 {
    if limit.is_infinite() { i64::MAX } else { signed(burst) }
}

fn signed(millionths: u64) -> i64 {
    i64::try_from(millionths).unwrap_or(i64::MAX)
}
