//! The rate limit: tokens for each destination, taken at once, ahead of time, or by calls that wait in line.
//!
//! | file | its part |
//! |---|---|
//! | `limit` | a rate, as a ratio of integers |
//! | `tokens` | the bucket of one destination, over plain values |
//! | `limiter` | the bucket as threads share it, with its line of waiting calls |
//! | `reservation` | tokens that were taken ahead of time |
//! | `settings` | the setters |

mod limit;
pub(super) mod limiter;
mod reservation;
mod settings;
pub(super) mod tokens;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::Warning;
use reattempt_core::guard::{
    Admit, Arrival, End, Guard, GuardKind, Quota, Reason, Refused, Resume,
};

use super::line::Wakers;
use super::time::nanos;
use crate::destination_table::Entry;
use crate::keyed::{Found, Hold, Keyed};
use limiter::{Forgets, Limiter, Look, Pass};
use settings::Rules;
use tokens::Booking;

pub use limit::Limit;
pub(super) use limit::TOKEN;
pub use reservation::Reservation;

/// A rate limit for each destination, with the operations of Go's x/time/rate.
///
/// A bucket of `burst` tokens starts full, and time adds `limit` tokens for each second. A call takes one token. All
/// numbers are integers (millionths of a token, nanoseconds), so no rate drifts.
///
/// # What goes wrong without it, and with it
///
/// *Without a limit*, a client with more work than its quota is refused by the server. Each refusal costs the server
/// work and the caller a round trip.
///
/// *A count for each window* admits twice the burst at a window's edge; here a bucket refills steadily. *A clock that
/// goes back* mints tokens; here an earlier moment counts as the latest one. *A dropped waiter* keeps its tokens;
/// here they return in the step that removes it. *A limit for each clone* multiplies the rate; here clones share
/// their state.
///
/// # As a guard
///
/// | mode | a call without a token |
/// |---|---|
/// | wait, the default | waits for at most 30 s in a line of at most 1024 ([`queue`](Self::queue)) |
/// | refuse ([`no_queue`](Self::no_queue)) | is refused, with the time until there is a token |
/// | [`follow`](Self::follow) the server's rate limit fields | waits or is refused, at a lower rate |
///
/// - A call whose wait would pass its deadline is refused at once. With a burst of 0 every call is refused.
/// - Waiting calls go in the order in which they came. A waiting call that is not polled blocks no other.
/// - If the rate changes, calls that wait go earlier or later. A [`Reservation`] keeps its moment.
/// - A call that is admitted and not sent returns its token, if the bucket has had room for it since.
/// - Tokens on which a later reservation is built do not return, until that reservation's moment.
/// - If the [table](Self::max_destinations) is full, a destination whose tokens are full again leaves for a newcomer,
///   unless a call is in flight or a reservation is kept. No token is lost or made. A quota that the server has stated
///   is forgotten, and the next response states it again. If no destination may leave, newcomers share the tokens of
///   one more. They may be refused because of each other.
/// - A destination whose own rate or burst was set never leaves, and finds a place past the bound.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::{Limit, RateLimit};
///
/// let limit = RateLimit::new(Limit::per_second(10), 2);
/// let now = Duration::from_secs(100);
/// assert!(limit.allow("a.example", now) && limit.allow("a.example", now));
/// assert!(!limit.allow("a.example", now));
/// assert!(limit.allow("b.example", now), "another destination");
/// let reservation = limit.reserve("a.example", now);
/// assert_eq!(reservation.delay(now), Duration::from_millis(100));
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new limit"]
pub struct RateLimit {
    rules: Arc<ArcSwap<Rules>>,
    limiters: Arc<Keyed<Limiter>>,
}

/// The proof that a rate limit admitted a call or has it in line.
pub struct RateTicket {
    limiter: Hold<Limiter>,
    pass: Pass,
}

impl RateLimit {
    /// Takes a token. Returns `false` if there is none.
    #[inline]
    pub fn allow(&self, destination: &str, now: Duration) -> bool {
        self.allow_n(destination, 1, now)
    }

    /// Takes `n` tokens. Returns `false`, and takes none, if there are fewer.
    #[inline]
    pub fn allow_n(&self, destination: &str, n: u32, now: Duration) -> bool {
        let allowed = self.with(destination, now, |limiter| limiter.allow(cost(n), now));
        allowed.unwrap_or(false)
    }

    /// Takes a token, ahead of time if there is none. The caller must wait for the reservation's delay.
    pub fn reserve(&self, destination: &str, now: Duration) -> Reservation {
        self.reserve_n(destination, 1, now)
    }

    /// Takes `n` tokens, ahead of time if there are fewer.
    pub fn reserve_n(&self, destination: &str, n: u32, now: Duration) -> Reservation {
        self.reserve_until(destination, n, now, Duration::MAX)
    }

    /// Takes `n` tokens if they will be there by `latest`: the part of x/time/rate's `WaitN` before its wait.
    ///
    /// Sleep for the reservation's delay, and cancel it if the sleep is dropped. `reattempt::guard::wait_for_tokens`
    /// and a guard layer do both.
    pub fn reserve_until(
        &self,
        destination: &str,
        n: u32,
        now: Duration,
        latest: Duration,
    ) -> Reservation {
        let granted = self.with(destination, now, |limiter| {
            let booked = limiter.reserve(cost(n), now, latest)?;
            Some(booked.ok().map(|booking: Booking| (Arc::clone(limiter.entry()), booking)))
        });
        Reservation { granted: granted.flatten() }
    }

    /// Returns the tokens that `destination` has at `now`; below 0 if some were taken ahead of time.
    #[allow(clippy::cast_precision_loss, reason = "the tokens as a float are an approximation")]
    pub fn tokens(&self, destination: &str, now: Duration) -> f64 {
        self.look(destination, Some(now)).balance as f64 / TOKEN as f64
    }

    /// Returns the rate of `destination`.
    pub fn limit(&self, destination: &str) -> Limit {
        self.look(destination, None).limit
    }

    /// Returns the burst of `destination`.
    pub fn burst(&self, destination: &str) -> u32 {
        u32::try_from(self.look(destination, None).burst / TOKEN).unwrap_or(u32::MAX)
    }

    /// Returns the number of calls that wait for `destination`.
    pub fn waiting(&self, destination: &str) -> usize {
        self.look(destination, None).waiting
    }

    /// Sets the rate of `destination` from `now` on. [`replace_settings`](Self::replace_settings) no longer changes it.
    pub fn set_limit(&self, destination: &str, limit: Limit, now: Duration) {
        self.change(destination, now, |tokens| tokens.set(limit, tokens.burst));
    }

    /// Sets the burst of `destination` from `now` on. [`replace_settings`](Self::replace_settings) no longer changes
    /// it.
    pub fn set_burst(&self, destination: &str, burst: u32, now: Duration) {
        self.change(destination, now, |tokens| tokens.set(tokens.limit, cost(burst)));
    }

    /// Follows the `RateLimit` or `x-ratelimit` fields of a response: `remaining` calls until `reset` from `now`.
    ///
    /// A guard layer calls this for each HTTP response if the hint for rate limits is on:
    /// `GuardLayer::with(Http::new().hints(Hints::default().rate_limit(true)), limit)`.
    ///
    /// If the remaining calls would be used up before the reset, the rate is lowered until the reset. One call may go
    /// at once, the others are spread over the time. The rate is never raised. Each response replaces the one before.
    /// With none or few remaining, one trial call passes in each [`trial_interval`](Self::trial_interval).
    ///
    /// A reset of zero restores the destination's own rate. Resets are cut to [`longest_reset`](Self::longest_reset).
    pub fn follow(&self, destination: &str, remaining: u32, reset: Duration, now: Duration) {
        let quota = Quota::new(remaining, reset);
        let follow = |limiter: &Found<'_, Limiter>| self.follow_at(limiter, quota, now);
        let first = self.limiters.with(destination, now, self.create(), follow);
        first.into_iter().for_each(Wakers::wake);
    }

    /// Follows a quota at one destination. Returns the wakers of the line.
    fn follow_at(&self, limiter: &Limiter, quota: Quota, now: Duration) -> Option<Wakers> {
        let (reset, trial) = {
            let rules = self.rules.load();
            (quota.reset.min(rules.longest_reset), rules.trial_interval)
        };
        limiter.change(now, false, |tokens| {
            let until = tokens.now().saturating_add(nanos(reset));
            tokens.follow(cost(quota.remaining), until, trial);
        })
    }

    /// Follows a quota at one destination. Not inlined, because few responses state one.
    ///
    /// A limiter that has left the table is not missed: the next response states the quota again.
    #[inline(never)]
    fn follow_and_wake(&self, limiter: &Limiter, quota: Quota, now: Duration) {
        let wakers = self.follow_at(limiter, quota, now);
        wakers.into_iter().for_each(Wakers::wake);
    }

    /// Adopts the settings of another limit, except `max_destinations`, and keeps the state.
    ///
    /// A destination whose own rate or burst was set keeps both. For the others, the time since the last call is
    /// credited at the new rate.
    pub fn replace_settings(&self, with: &Self) {
        let max_destinations = self.rules.load().max_destinations;
        let rules = Arc::new(Rules { max_destinations, ..**with.rules.load() });
        let replace = || self.rules.store(Arc::clone(&rules));
        self.limiters.adopt(replace, |limiter| limiter.adopt(&rules.rule));
        // Outside the table's lock: a waker may use the limit.
        self.limiters.all().iter().for_each(|limiter| limiter.wake_first());
    }

    fn change(&self, destination: &str, now: Duration, change: impl Fn(&mut tokens::Tokens)) {
        let change = |limiter: &Found<'_, Limiter>| limiter.change(now, true, &change);
        let first = self.limiters.set(destination, now, self.create(), change);
        first.into_iter().for_each(Wakers::wake);
    }

    fn look(&self, destination: &str, now: Option<Duration>) -> Look {
        match self.limiters.get(destination) {
            Some(limiter) => limiter.look(now),
            None => Limiter::new(self.rules.load().rule).look(now),
        }
    }

    fn create(&self) -> impl Fn(&Arc<str>) -> Limiter {
        |_| Limiter::new(self.rules.load().rule)
    }

    /// Uses the limiter of `destination`, or else the one that destinations without a place share.
    #[inline(always)]
    fn with<R>(
        &self,
        destination: &str,
        now: Duration,
        act: impl Fn(&Found<'_, Limiter>) -> Option<R>,
    ) -> Option<R> {
        match self.limiters.at_hand(destination) {
            Some(kept) => act(&Found::Kept(kept)),
            None => self.look_up(destination, now, act),
        }
    }

    // Out of line, so that the code for a limiter at hand stays small.
    #[inline(never)]
    fn look_up<R>(
        &self,
        destination: &str,
        now: Duration,
        act: impl Fn(&Found<'_, Limiter>) -> Option<R>,
    ) -> Option<R> {
        let own = self.limiters.look_up(destination, now, false, self.create(), &act);
        own.or_else(|| act(&self.limiters.shared()?))
    }
}

/// Returns the cost of `n` tokens in millionths.
#[inline]
fn cost(n: u32) -> u64 {
    u64::from(n) * TOKEN
}

impl Entry for Limiter {
    /// A quota that the server has stated is lost, and stated again. No token is.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.retire(now, if forgets { Forgets::Quota } else { Forgets::Nothing }, is_idle)
    }
}

impl Guard for RateLimit {
    type Ticket = RateTicket;

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<RateTicket> {
        let admitted = self.with(arrival.destination, arrival.now, |limiter| {
            let admitted = limiter.admit(arrival)?;
            Some(admitted.map(|pass| RateTicket { limiter: limiter.hold(), pass }))
        });
        // The shared limiter is never retired, so there is always an answer.
        admitted.unwrap_or(Admit::Refused(Refused::new(GuardKind::RateLimit, Reason::Full)))
    }

    fn end(&self, ticket: RateTicket, end: &End, now: Duration) -> Option<RateTicket> {
        let limiter = self.limiters.held(&ticket.limiter)?;
        match *end {
            End::Unsent => limiter.unsent(&ticket.pass, now),
            // The quota of one server is none for others.
            End::Judged { quota: Some(quota), .. }
                if !self.limiters.has_no_place(&ticket.limiter) =>
            {
                self.follow_and_wake(limiter, quota, now);
            }
            _ => {}
        }
        None
    }

    #[inline]
    fn times_success(&self, _: &RateTicket) -> bool {
        false
    }

    fn resume(&self, ticket: &mut RateTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let Some(limiter) = self.limiters.held(&ticket.limiter) else { return Resume::Admitted };
        limiter.resume(&mut ticket.pass, arrival, waker)
    }

    /// The token is kept.
    fn renew(&self, ticket: RateTicket, _: &Arrival<'_>) -> Result<RateTicket, Refused> {
        Ok(ticket)
    }

    fn check(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        match self.limiters.get(arrival.destination) {
            Some(limiter) => limiter.check(arrival),
            None => Limiter::new(self.rules.load().rule).check(arrival),
        }
    }

    fn validate(&self) -> Vec<Warning> {
        Self::validate(self)
    }
}

impl fmt::Debug for RateTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateTicket").field("pass", &self.pass).finish_non_exhaustive()
    }
}
