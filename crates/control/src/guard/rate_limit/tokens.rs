//! The tokens of one destination, over plain values: millionths, nanoseconds, and no float.
//!
//! Every take advances a *position*, and a booking stores the position after its own tokens. From the two positions
//! follow the tokens taken since, and the moment at which time has added the booking's tokens.

use super::limit::{Limit, TOKEN};

/// A bucket of tokens. Below zero, tokens were taken that time has yet to add.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    balance: i64,
    /// The most that the bucket holds: the burst. At an infinite rate that has no meaning.
    capacity: i64,
    /// The latest moment seen: time does not go back.
    now: u64,
    /// The rate in force: `limit`, or the one that the server's answers imply.
    rate: Limit,
    /// The rest of the last division by the rate's period.
    rest: u64,
    /// The moment at which `limit` is in force again; the latest of all if it is.
    follows_until: u64,
    /// The tokens taken so far; it wraps.
    position: u64,
    pub(crate) limit: Limit,
    pub(crate) burst: u64,
}

/// Tokens that were taken, at once or ahead of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Booking {
    /// 0 if the rate was infinite.
    pub(crate) cost: u64,
    /// The position behind the tokens.
    pub(crate) end: u64,
    /// The moment at which they are there.
    pub(crate) at: u64,
}

/// The reason why tokens cannot be booked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unbookable {
    /// More than the bucket ever holds.
    TooMany,
    /// They would be there at this moment, or never.
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
            limit,
            burst,
        }
    }

    /// Adds what time has added by `now`.
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
        // What does not fit is lost, the fraction of a millionth with it.
        let room = self.capacity.wrapping_sub(self.balance).cast_unsigned();
        (self.balance, self.rest) = if minted < room {
            (self.balance.wrapping_add_unsigned(minted), rest)
        } else {
            (self.capacity, 0)
        };
    }

    /// Takes `cost` millionths if they are there now.
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

    /// Returns `true` if the server's answers hold the rate down.
    pub(crate) fn follows(&self) -> bool {
        self.follows_until != NEVER
    }

    /// Returns `true` if a new bucket would behave the same.
    pub(crate) fn is_initial(&self) -> bool {
        self.is_infinite() || !self.follows() && self.balance == self.capacity
    }

    /// Returns `true` if the own rate would have filled the bucket by now, however few tokens it had.
    pub(crate) fn is_full_without_quota(&self, now: u64) -> bool {
        let missing = self.burst.saturating_add(self.balance.min(0).unsigned_abs());
        let full = self.limit.time_for(missing, 0).and_then(|time| self.now.checked_add(time));
        self.follows() && full.is_some_and(|full| full <= now)
    }

    /// Takes `cost` millionths that are there at `latest`.
    #[inline]
    pub(crate) fn book(&mut self, cost: u64, latest: u64) -> Result<Booking, Unbookable> {
        if self.is_infinite() {
            return Ok(Booking { cost: 0, end: self.position, at: self.now });
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
        Ok(Booking { cost, end: self.position, at })
    }

    /// Returns the moment at which the tokens that end there are added, if ever.
    pub(crate) fn due_for(&self, end: u64) -> Option<u64> {
        if self.is_infinite() {
            return Some(self.now);
        }
        let missing = signed(self.taken_after(end)).saturating_add(self.balance).min(0);
        self.due(missing.unsigned_abs())
    }

    fn due(&self, missing: u64) -> Option<u64> {
        let due =
            self.rate.time_for(missing, self.rest).and_then(|time| self.now.checked_add(time));
        if !self.follows() || due.is_some_and(|due| due <= self.follows_until) {
            return due;
        }
        let (minted, _) = self.rate.minted(self.follows_until - self.now, self.rest);
        let missing = missing.saturating_sub(minted);
        self.follows_until.checked_add(self.limit.time_for(missing, 0)?)
    }

    /// Returns the tokens taken after those that end there. Tokens given back since may have left none.
    pub(crate) fn taken_after(&self, end: u64) -> u64 {
        let after = self.position.wrapping_sub(end);
        if i64::try_from(after).is_ok() { after } else { 0 }
    }

    /// Returns the part of a booking that nothing later is built upon: what x/time/rate restores.
    ///
    /// It is nothing if its moment has passed.
    pub(crate) fn cancellable(&self, booking: &Booking) -> u64 {
        if booking.at < self.now {
            return 0;
        }
        let debt = self.balance.min(0).unsigned_abs();
        booking.cost.saturating_sub(self.taken_after(booking.end).min(debt))
    }

    /// Gives tokens back. The positions of what was taken after them move back by the same amount.
    pub(crate) fn give_back(&mut self, amount: u64) {
        self.balance = self.balance.saturating_add(signed(amount)).min(self.capacity);
        self.position = self.position.wrapping_sub(amount);
    }

    /// Changes the rate and the burst from now on. A rate that the server's answers imply stays in force.
    pub(crate) fn set(&mut self, limit: Limit, burst: u64) {
        (self.limit, self.burst, self.capacity) = (limit, burst, capacity(limit, burst));
        self.balance = self.balance.min(signed(burst));
        if !self.follows() {
            (self.rate, self.rest) = (limit, 0);
        }
    }

    /// Lowers the rate so that `remaining` millionths last until then. If they last anyway, the own rate is in force.
    pub(crate) fn follow(&mut self, remaining: u64, until: u64) {
        (self.rate, self.rest, self.follows_until) = (self.limit, 0, NEVER);
        let Some(time) = until.checked_sub(self.now).filter(|time| *time > 0) else { return };
        let (minted, _) = self.limit.minted(time, 0);
        let held = self.balance.max(0).unsigned_abs();
        let unlimited = self.limit.is_infinite();
        if !unlimited && held.saturating_add(minted) <= remaining {
            return;
        }
        // One call may go at once, the others are spread over the time that is left.
        let first = remaining.min(TOKEN);
        let first = if unlimited { first } else { first.min(held) };
        self.balance = self.balance.min(0).saturating_add(signed(first));
        (self.rate, self.follows_until) =
            (Limit::ratio(remaining - first, time), until.min(NEVER - 1));
    }
}

/// No moment at all.
const NEVER: u64 = u64::MAX;

fn capacity(limit: Limit, burst: u64) -> i64 {
    if limit.is_infinite() { i64::MAX } else { signed(burst) }
}

fn signed(millionths: u64) -> i64 {
    i64::try_from(millionths).unwrap_or(i64::MAX)
}
