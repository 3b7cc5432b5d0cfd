//! Tokens that were taken ahead of time.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::limiter::Limiter;
use super::tokens::Booking;

/// Tokens taken ahead of time, as `Reservation` of x/time/rate.
///
/// Its moment stays if the rate or the burst changes. Dropping it returns no tokens; [`cancel`](Self::cancel_at) does.
#[must_use = "a reservation has taken tokens, whether or not they are used"]
pub struct Reservation {
    /// There if the tokens were granted.
    pub(super) granted: Option<(Arc<Limiter>, Booking)>,
}

impl Reservation {
    /// Returns `true` if the tokens were granted. They are not if they exceed the burst, come after `latest`, or never
    /// come.
    pub fn ok(&self) -> bool {
        self.granted.is_some()
    }

    /// Returns the time from `now` until the tokens may be used; [`Duration::MAX`] if they were not granted.
    pub fn delay_at(&self, now: Duration) -> Duration {
        match &self.granted {
            Some((_, booking)) => Duration::from_nanos(booking.at).saturating_sub(now),
            None => Duration::MAX,
        }
    }

    /// Gives back the tokens, except as many as later reservations have borrowed.
    ///
    /// It has no effect after the reservation's moment, or if called again.
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
