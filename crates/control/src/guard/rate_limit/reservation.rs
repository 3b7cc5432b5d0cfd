//! Tokens taken in advance.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::limiter::Limiter;
use super::tokens::Booking;

/// A reservation of tokens taken in advance, as in x/time/rate.
///
/// The time at which the tokens may be used stays the same if the rate or the burst changes. Dropping a reservation
/// does not return its tokens; [`cancel`](Self::cancel_at) does.
#[must_use = "a reservation has taken tokens, whether or not they are used"]
pub struct Reservation {
    /// `Some` if the tokens were granted.
    pub(super) granted: Option<(Arc<Limiter>, Booking)>,
}

impl Reservation {
    /// Returns `true` if the tokens were granted. They are refused if they exceed the burst or would not be available
    /// by `latest`.
    pub fn ok(&self) -> bool {
        self.granted.is_some()
    }

    /// Returns the time from `now` until the tokens may be used, or [`Duration::MAX`] if they were not granted.
    pub fn delay_at(&self, now: Duration) -> Duration {
        match &self.granted {
            Some((_, booking)) => Duration::from_nanos(booking.at).saturating_sub(now),
            None => Duration::MAX,
        }
    }

    /// Returns the tokens, except those that later reservations have borrowed.
    ///
    /// Has no effect once the tokens may be used, or if the reservation was already cancelled.
    pub fn cancel_at(&mut self, now: Duration) {
        if let Some((limiter, booking)) = &mut self.granted {
            limiter.cancel(booking, now);
            booking.cost = 0;
        }
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.granted.as_ref().map(|(_, booking)| Duration::from_nanos(booking.at));
        f.debug_struct("Reservation").field("ok", &self.ok()).field("at", &at).finish()
    }
}
