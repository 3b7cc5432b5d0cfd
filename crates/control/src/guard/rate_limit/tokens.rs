//! The tokens of one destination, over plain values: millionths, nanoseconds, and no float.
//!
//! Every take moves a *position* on, and a booking notes the position behind its own tokens. So whatever waits
//! knows at any moment how many tokens were taken after its own, and when its own will have been added.

use super::limit::{Limit, TOKEN};

/// A bucket of tokens. Below zero, tokens were taken that time has yet to add.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens {
    pub(crate) limit: Limit,
    /// The most that the bucket holds.
    pub(crate) burst: u64,
    balance: i64,
    /// The rest of the last division by the rate's period.
    rest: u64,
    /// The latest moment seen: time does not go back.
    now: u64,
    /// The tokens taken so far; it wraps.
    position: u64,
    pub(crate) followed: Option<Followed>,
}

/// The rate that a server's answers imply, until its window ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Followed {
    limit: Limit,
    pub(crate) until: u64,
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
        let balance = signed(burst);
        Self { limit, burst, balance, rest: 0, now: 0, position: 0, followed: None }
    }

    /// Adds what time has added by `now`.
    #[inline]
    pub(crate) fn advance(&mut self, now: u64) {
        if let Some(followed) = self.followed {
            if now < followed.until {
                return self.mint(followed.limit, now);
            }
            self.mint(followed.limit, followed.until);
            self.followed = None;
            self.rest = 0;
        }
        self.mint(self.limit, now);
    }

    #[inline]
    fn mint(&mut self, limit: Limit, now: u64) {
        if now <= self.now {
            return;
        }
        let (minted, rest) = limit.minted(now - self.now, self.rest);
        self.now = now;
        let (minted, room) = (signed(minted), self.capacity().saturating_sub(self.balance));
        // What does not fit is lost, the fraction of a millionth with it.
        (self.balance, self.rest) =
            if minted < room { (self.balance + minted, rest) } else { (self.capacity(), 0) };
    }

    /// Returns the most that the bucket holds. At an infinite rate the burst has no meaning.
    #[inline]
    fn capacity(&self) -> i64 {
        if self.limit.is_infinite() { i64::MAX } else { signed(self.burst) }
    }

    pub(crate) fn now(&self) -> u64 {
        self.now
    }

    pub(crate) fn balance(&self) -> i64 {
        self.balance
    }

    /// Returns `true` if nothing limits the rate.
    #[inline]
    pub(crate) fn is_infinite(&self) -> bool {
        self.limit.is_infinite() && self.followed.is_none()
    }

    /// Returns `true` if a new bucket would behave the same.
    pub(crate) fn is_initial(&self) -> bool {
        self.is_infinite() || self.followed.is_none() && self.balance == signed(self.burst)
    }

    /// Takes `cost` millionths that are there at `latest`.
    #[inline]
    pub(crate) fn book(&mut self, cost: u64, latest: u64) -> Result<Booking, Unbookable> {
        if self.is_infinite() {
            return Ok(Booking { cost: 0, end: self.position, at: self.now });
        }
        if signed(cost) > self.capacity() {
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
        let Some(followed) = self.followed else {
            return self.now.checked_add(self.limit.time_for(missing, self.rest)?);
        };
        let due = followed.limit.time_for(missing, self.rest);
        match due.and_then(|time| self.now.checked_add(time)) {
            Some(due) if due <= followed.until => Some(due),
            _ => {
                let (minted, _) = followed.limit.minted(followed.until - self.now, self.rest);
                let missing = missing.saturating_sub(minted);
                followed.until.checked_add(self.limit.time_for(missing, 0)?)
            }
        }
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
        self.balance = self.balance.saturating_add(signed(amount)).min(self.capacity());
        self.position = self.position.wrapping_sub(amount);
    }

    /// Changes the rate and the burst from now on.
    pub(crate) fn set(&mut self, limit: Limit, burst: u64) {
        (self.limit, self.burst, self.rest) = (limit, burst, 0);
        self.balance = self.balance.min(signed(burst));
    }

    /// Lowers the rate so that `remaining` millionths last until then. It changes nothing if they last anyway.
    pub(crate) fn follow(&mut self, remaining: u64, until: u64) {
        self.followed = None;
        if until <= self.now {
            return;
        }
        let time = until - self.now;
        let (minted, _) = self.limit.minted(time, self.rest);
        let held = self.balance.max(0).unsigned_abs();
        if !self.limit.is_infinite() && held.saturating_add(minted) <= remaining {
            return;
        }
        // One call may go at once, the others are spread over the time that is left.
        let first = remaining.min(TOKEN);
        let first = if self.limit.is_infinite() { first } else { first.min(held) };
        self.balance = self.balance.min(0).saturating_add(signed(first));
        self.rest = 0;
        self.followed = Some(Followed { limit: Limit::ratio(remaining - first, time), until });
    }
}

fn signed(millionths: u64) -> i64 {
    i64::try_from(millionths).unwrap_or(i64::MAX)
}
