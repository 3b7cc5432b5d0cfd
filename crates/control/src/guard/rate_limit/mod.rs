//! The rate limit: tokens per destination, taken immediately, in advance, or by waiting calls.
//!
//! | file | content |
//! |---|---|
//! | `limit` | a rate, as a ratio of integers |
//! | `tokens` | a destination's bucket, as plain values |
//! | `limiter` | the bucket, shared by threads, with its queue of waiting calls |
//! | `reservation` | tokens taken in advance |
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

use reattempt_core::guard::{Admit, Arrival, End, Health, Quota, Refused, Resume};
use reattempt_core::snapshot::Part;
use reattempt_core::{Recommended, Warning};

use super::guard_type::guard;
use super::inspect;
use super::per_destination::{PerDestination, State};
use super::usual_latency::UsualLatency;
use super::wait_queue::Wakers;
use crate::destination_table::Entry;
use crate::millionths::units;
use limiter::{Forgets, Limiter, LimiterNote, LimiterSettings, Look};
use tokens::Booking;

pub use limit::Limit;
pub(super) use limit::TOKEN;
pub use reservation::Reservation;

/// A rate limit per destination, with the operations of Go's x/time/rate.
///
/// A bucket of `burst` tokens starts full, and time adds `limit` tokens per second. Each call takes one token. All
/// amounts are integers (millionths of a token, nanoseconds), so rates do not drift.
///
/// # Failures that it prevents
///
/// *Without a limit*, the server refuses calls beyond the client's quota. Each refusal costs the server some work and
/// the caller a round trip.
///
/// *A counter per window* admits twice the burst at a window's edge; here a bucket refills steadily. *A clock that goes
/// backwards* creates tokens; here an earlier time is replaced by the latest one. *A waiting call that is dropped*
/// wastes its tokens; here they are returned. *A limit per clone* multiplies the rate; here clones share their state.
///
/// # As a guard
///
/// | mode | a call without a token |
/// |---|---|
/// | wait, the default | waits for at most 30 s in a queue of at most 1024 ([`queue`](Self::queue)) |
/// | refuse ([`no_queue`](Self::no_queue)) | is refused, with the time until a token is available |
/// | [`follow`](Self::follow_at) the server's rate-limit headers | waits or is refused, but at a lower rate |
/// | a response with 429 or 503 and a wait (`Retry-After`), without such headers | waits or is refused until the wait is over; afterwards the limit's own rate applies |
///
/// - A call that would wait past its deadline is refused immediately. With a burst of 0, every call is refused.
/// - Waiting calls are admitted in order of arrival. A waiting call that is not polled does not block others.
/// - If the rate changes, waiting calls are admitted earlier or later. The time of a [`Reservation`] stays the same.
/// - A call that is admitted but not sent returns its token, if the bucket has had room for it in the meantime.
/// - Tokens that a later reservation depends on are not returned until that reservation's time.
/// - If the [table](Self::max_destinations) is full, a new destination replaces one with a full bucket and neither a
///   call in flight nor a reservation. No token is lost or created. A quota stated by the server is forgotten until the
///   next response restates it. If nothing can be evicted, new destinations share one bucket. A call to one of them may
///   then be refused because of calls to the others.
/// - A destination with its own rate or burst is never evicted, and gets an entry even if the table is full.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::{Limit, RateLimit};
///
/// let limit = RateLimit::new(Limit::per_second(10), 2);
/// let now = Duration::from_secs(100);
/// assert!(limit.allow_at("a.example", now) && limit.allow_at("a.example", now));
/// assert!(!limit.allow_at("a.example", now));
/// assert!(limit.allow_at("b.example", now), "another destination");
/// let reservation = limit.reserve_at("a.example", now);
/// assert_eq!(reservation.delay_at(now), Duration::from_millis(100));
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new limit"]
pub struct RateLimit(PerDestination<Limiter>);

guard! {
    RateLimit, RateTicket, Limiter,
    kind: "rate_limit",
    memory: "0.3 MB",
    replaced: "A destination whose own rate or burst was set keeps both. For the others, the time since the last \
               call is credited at the new rate.",
}

impl RateLimit {
    /// Takes a token. Returns `false` if none is available.
    #[inline]
    pub fn allow_at(&self, destination: &str, now: Duration) -> bool {
        self.allow_n_at(destination, 1, now)
    }

    /// Takes `n` tokens. Returns `false` without taking any if fewer are available.
    #[inline]
    pub fn allow_n_at(&self, destination: &str, n: u32, now: Duration) -> bool {
        let allowed = self.0.with(destination, now, |limiter| limiter.allow(cost(n), now));
        allowed.unwrap_or(false)
    }

    /// Reserves a token, in advance if none is available. The caller must wait for the reservation's delay.
    pub fn reserve_at(&self, destination: &str, now: Duration) -> Reservation {
        self.reserve_n_at(destination, 1, now)
    }

    /// Reserves `n` tokens, in advance if fewer are available. The caller must wait for the reservation's delay.
    pub fn reserve_n_at(&self, destination: &str, n: u32, now: Duration) -> Reservation {
        self.reserve_until_at(destination, n, now, Duration::MAX)
    }

    /// Reserves `n` tokens if they will be available by `latest`. This is x/time/rate's `WaitN` without the wait.
    ///
    /// Sleep for the reservation's delay, and cancel the reservation if the sleep is dropped.
    /// `reattempt::guard::wait_for_tokens` and a guard layer do both.
    pub fn reserve_until_at(&self, destination: &str, n: u32, now: Duration, latest: Duration) -> Reservation {
        let granted = self.0.with(destination, now, |limiter| {
            let booked = limiter.reserve(cost(n), now, latest)?;
            Some(booked.ok().map(|booking: Booking| (Arc::clone(limiter.entry()), booking)))
        });
        Reservation { granted: granted.flatten() }
    }

    /// Returns the tokens of `destination` at `now`, which are negative if some were taken in advance.
    pub fn tokens_at(&self, destination: &str, now: Duration) -> f64 {
        units(self.look(destination, Some(now)).balance)
    }

    /// Returns the rate of `destination`.
    pub fn limit(&self, destination: &str) -> Limit {
        self.look(destination, None).limit
    }

    /// Returns the burst of `destination`.
    pub fn burst(&self, destination: &str) -> u32 {
        u32::try_from(self.look(destination, None).burst / TOKEN).unwrap_or(u32::MAX)
    }

    /// Returns the number of calls waiting for `destination`.
    pub fn waiting(&self, destination: &str) -> usize {
        self.look(destination, None).waiting
    }

    /// Sets the rate of `destination` from `now` on. Afterwards, [`replace_settings`](Self::replace_settings) does not
    /// change this rate.
    pub fn set_limit_at(&self, destination: &str, limit: Limit, now: Duration) {
        self.change(destination, now, |tokens| tokens.set(limit, tokens.burst));
    }

    /// Sets the burst of `destination` from `now` on. Afterwards, [`replace_settings`](Self::replace_settings) does not
    /// change this burst.
    pub fn set_burst_at(&self, destination: &str, burst: u32, now: Duration) {
        self.change(destination, now, |tokens| tokens.set(tokens.limit, cost(burst)));
    }

    /// Follows a response's `RateLimit` or `x-ratelimit` headers: `remaining` calls until `reset`, measured from `now`.
    ///
    /// A guard layer calls this for each HTTP response if rate-limit hints are turned on:
    /// `GuardLayer::with(Http::new().hints(Hints::default().rate_limit(true)), limit)`.
    ///
    /// If the remaining calls would run out before the reset, the rate is lowered until then. One call is admitted
    /// immediately, and the others are spread over the remaining time. The rate is never raised. Each response replaces
    /// the previous one. If few or no calls remain, one trial call is admitted per
    /// [`trial_interval`](Self::trial_interval).
    ///
    /// A reset of zero restores the destination's own rate. Resets are clamped to
    /// [`longest_reset`](Self::longest_reset).
    pub fn follow_at(&self, destination: &str, remaining: u32, reset: Duration, now: Duration) {
        let quota = Quota::new(remaining, reset);
        let first = self.0.with(destination, now, |limiter| limiter.follow(quota, now));
        first.into_iter().for_each(Wakers::wake);
    }

    fn change(&self, destination: &str, now: Duration, change: impl Fn(&mut tokens::Tokens)) {
        let first = self.0.set(destination, now, |limiter| limiter.change(now, true, &change));
        first.into_iter().for_each(Wakers::wake);
    }

    fn look(&self, destination: &str, now: Option<Duration>) -> Look {
        self.0.read(destination, |limiter| limiter.look(now))
    }
}

/// Returns the cost of `n` tokens in millionths.
#[inline]
fn cost(n: u32) -> u64 {
    u64::from(n) * TOKEN
}

impl Entry for Limiter {
    /// Retires the entry if it is idle. If `forgets`, a quota stated by the server may be discarded until it is stated
    /// again.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.retire(now, if forgets { Forgets::Quota } else { Forgets::Nothing }, is_idle)
    }
}

impl State for Limiter {
    type Settings = LimiterSettings;
    type Note = LimiterNote;
    type Shown = Look;

    const UNCOUNTED: LimiterNote = LimiterNote::UNCOUNTED;
    const OTHERS_SHARE: bool = true;
    const LISTED: &'static str = "held";

    fn new(settings: &LimiterSettings, _: &Arc<str>) -> Self {
        Self::new(*settings)
    }

    /// Creates the state shared by destinations without an entry. It follows no quota, because one server's quota does
    /// not apply to others.
    fn for_others(settings: &LimiterSettings) -> Self {
        Self::new(LimiterSettings { following: None, ..*settings })
    }

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<LimiterNote>> {
        self.admit(arrival)
    }

    fn record_end(&self, note: &LimiterNote, end: &End, now: Duration) -> Option<LimiterNote> {
        match *end {
            End::Unsent => self.unsent(note, now),
            // If the limiter was removed from the table, the next response states the quota again.
            End::Judged { quota: Some(quota), .. } => {
                self.follow(quota, now).into_iter().for_each(Wakers::wake);
            }
            End::Judged { health: Health::Overloaded | Health::Unavailable, .. } => self.follow_wait(end, now),
            _ => {}
        }
        None
    }

    fn latency(&self) -> Option<&UsualLatency> {
        Some(&self.latency)
    }

    fn resume(&self, note: &mut LimiterNote, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        self.resume(note, arrival, waker)
    }

    fn wake_waiting(&self) {
        self.wake_first();
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.would_admit(arrival)
    }

    fn adopt(&self, settings: &LimiterSettings) {
        self.adopt(settings);
    }

    /// Warns if the burst is unusual for the rate, or if no call can be admitted. For rates below one call per second,
    /// any burst of at least one call is usual.
    fn validate(settings: &LimiterSettings) -> Vec<Warning> {
        let LimiterSettings { limit, burst, .. } = *settings;
        let per_second = limit.tokens_per_second();
        let calls = f64::from(u32::try_from(burst / TOKEN).unwrap_or(u32::MAX));
        let warning = if limit.is_infinite() {
            None
        } else if limit == Limit::ZERO {
            Some(Warning::new("limit", format_args!("{limit:?}"), "above 0"))
        } else if per_second >= 1.0 {
            Recommended::burst("burst", calls, per_second)
        } else {
            (burst == 0).then(|| Warning::new("burst", 0, "at least 1"))
        };
        warning.into_iter().collect()
    }

    fn show_settings(settings: &LimiterSettings, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("limit", &settings.limit).field("burst", &(settings.burst / TOKEN)).field("queue", &settings.patience);
    }

    /// Shows a destination that has waiting calls, or whose rate is lowered by the server.
    fn shown(&self) -> Option<Look> {
        let look = self.look(None);
        (look.waiting > 0 || look.follows).then_some(look)
    }

    fn inspect_settings(settings: &LimiterSettings, part: Part) -> Part {
        let part = settings.limit.inspect(part).field("burst", settings.burst / TOKEN);
        inspect::queue(settings.patience, part)
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        self.look(Some(now)).inspect(part)
    }
}
