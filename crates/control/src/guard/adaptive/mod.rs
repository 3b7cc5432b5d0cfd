//! The adaptive limit: a bulkhead whose limit follows the latencies and refusals of the server.
//!
//! | file | its part |
//! |---|---|
//! | `window` | the samples since the last move, without a lock |
//! | `rule` | the trait of the rules, and three of them |
//! | `settings` | the setters |

mod rule;
mod settings;
mod window;

use std::fmt;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, BodyEnd, End, Health, Refused, Resume};

use super::guard_type::guard;
use super::per_destination::{PerDestination, State};
use super::places::{Pass, Places, Usage};
use crate::destination_table::Entry;
use crate::sync::{Mutex, MutexGuard};
use rule::is_in_use;
use settings::{Bounds, Rules};
use window::Window;

pub use rule::{Aimd, Gradient2, LimitRule, Vegas};
pub use window::LimitWindow;

/// A limit on calls in flight that follows what the server can take, for each destination.
///
/// # What goes wrong without it, and with it
///
/// *A fixed limit* is too high after a server has lost half of its capacity, and too low after it has doubled.
///
/// *A rule that takes fast failures for low latency* raises the limit while the server is down. Here only calls that
/// were served have a latency. *A rule that counts calls only* raises it to the maximum while the client is idle. Here
/// a limit of which less than half is used does not grow. *A baseline taken under load* lets the queue stand for ever.
/// Here baselines are renewed.
///
/// # Rules
///
/// | rule | it looks at | it suits |
/// |---|---|---|
/// | [`Aimd`] | dropped calls | servers that refuse early |
/// | [`Vegas`] | the latency above a baseline that is renewed | steady latencies |
/// | [`Gradient2`] | the trend of latencies | latencies that drift |
///
/// - A sample is a call that was served, with its latency to the outcome, or one that was *dropped*:
///   [`Overloaded`](Health::Overloaded) or [`Unavailable`](Health::Unavailable). Both have the calls in flight at the
///   start. Other failures and abandoned calls are ignored.
/// - The limit moves when a window closes: after 1 s with 50 samples, or after 30 s with fewer. A call that began
///   before the last move is no sample. So one event lowers the limit once, even if many calls time out.
/// - Limits are from 1 to 200 and begin at 20 ([`bounds`](Self::bounds), [`initial`](Self::initial)).
/// - Places are those of a [`Bulkhead`](crate::Bulkhead): held to the end of the body, with a [`queue`](Self::queue)
///   by choice.
/// - If the [table](Self::max_destinations) is full, a destination without a call in flight leaves for a newcomer: one
///   without a sample first, otherwise the one that was used least recently. The limit that was found is lost. If each
///   that is looked at has a call in flight, calls to the newcomer are admitted without a limit.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::AdaptiveLimit;
///
/// let limit = AdaptiveLimit::vegas();
/// assert_eq!(limit.usage_at("a.example", Duration::from_secs(100)).limit, 20);
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new limit"]
pub struct AdaptiveLimit<R: LimitRule>(PerDestination<MovingPlaces<R>>);

guard! {
    AdaptiveLimit<R: LimitRule>, AdaptiveTicket, MovingPlaces<R>,
    memory: "1.7 MB",
    replaced: "Limits stay, and rules with their states. A limit out of bounds moves when its window closes.",
}

/// The places of a destination, with the window and the rule that move their limit.
struct MovingPlaces<R> {
    places: Places,
    window: Window,
    moving: Mutex<Moving<R>>,
}

/// The state that changes when a window closes.
struct Moving<R> {
    rule: R,
    limit: f64,
    bounds: Bounds,
    /// The windows that were closed; it wraps.
    windows: u64,
}

impl<R: LimitRule> MovingPlaces<R> {
    #[inline]
    fn record(&self, pass: Pass, end: &End, now: Duration) {
        let (Pass::Held { in_flight }, End::Judged { health, after, .. }) = (pass, end) else {
            return;
        };
        let served = match health {
            Health::Served => true,
            Health::Overloaded | Health::Unavailable => false,
            _ => return,
        };
        if self.window.record(served, *after, in_flight, now) {
            self.close_for(pass, now);
        }
    }

    /// Closes the window at the end of a call, whose place is freed if the user's rule panics.
    #[cold]
    #[inline(never)]
    fn close_for(&self, pass: Pass, now: Duration) {
        let place = Unwinding { places: &self.places, pass, now };
        self.close(now);
        mem::forget(place);
    }

    fn close(&self, now: Duration) {
        let (mut rule, limit, number, window) = {
            let mut moving = self.lock();
            // Another thread may have closed it.
            let Some(window) = self.window.close(now) else { return };
            moving.windows = moving.windows.wrapping_add(1);
            (moving.rule.clone(), moving.limit, moving.windows, window)
        };
        // Without the lock, because rule and wakers are the user's.
        let next = rule.next_limit(limit, &window);
        let grows = next > limit;
        let moves = next.is_finite() && (!grows || is_in_use(limit, &window));
        let _before = {
            let mut moving = self.lock();
            if moving.windows != number {
                // A later window was closed while the rule ran.
                return;
            }
            moving.limit = moving.bounds.clamp(if moves { next } else { limit });
            self.places.set_limit(whole(moving.limit));
            mem::replace(&mut moving.rule, rule)
        };
        self.places.fill();
    }

    fn lock(&self) -> MutexGuard<'_, Moving<R>> {
        self.moving.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a call while the user's rule runs. It is freed if the rule panics.
struct Unwinding<'a> {
    places: &'a Places,
    pass: Pass,
    now: Duration,
}

impl Drop for Unwinding<'_> {
    #[cold]
    fn drop(&mut self) {
        self.places.end_call(self.pass, &End::Over(BodyEnd::Dropped), self.now);
    }
}

/// Returns the limit in whole calls.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the limit is within bounds of 32 bits")]
fn whole(limit: f64) -> u32 {
    limit as u32
}

impl<R: LimitRule> AdaptiveLimit<R> {
    /// Returns the limit of `destination` and its use at `now`.
    pub fn usage_at(&self, destination: &str, now: Duration) -> Usage {
        self.0.read(destination, |state| state.places.usage(now))
    }
}

impl<R: LimitRule> Entry for MovingPlaces<R> {
    /// The limit that was found is lost.
    fn retire(&self, _: Duration, forgets: bool, _: &dyn Fn() -> bool) -> bool {
        (forgets || self.window.is_new()) && self.places.retire()
    }
}

impl<R: LimitRule> State for MovingPlaces<R> {
    type Settings = Rules<R>;
    type Note = Pass;
    type Shown = Usage;

    const UNCOUNTED: Pass = Pass::Held { in_flight: 0 };
    const LISTED: &'static str = "in_use";

    fn new(rules: &Rules<R>, _: &Arc<str>) -> Self {
        let limit = f64::from(rules.places.limit);
        let moving = Moving { rule: rules.rule.clone(), limit, bounds: rules.bounds, windows: 0 };
        Self { places: Places::new(&rules.places), window: Window::new(), moving: Mutex::new(moving) }
    }

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<Pass>> {
        self.places.admit(arrival)
    }

    #[inline(always)]
    fn record_end(&self, pass: &Pass, end: &End, now: Duration) -> Option<Pass> {
        self.record(*pass, end, now);
        self.places.end_call(*pass, end, now)
    }

    const TIMES_SUCCESS: Option<bool> = Some(true);

    fn resume(&self, pass: &mut Pass, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        self.places.resume(pass, arrival, waker)
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.places.would_admit(arrival)
    }

    /// The rule stays, with its state.
    fn merged(own: &Rules<R>, other: &Rules<R>) -> Rules<R> {
        Rules { rule: own.rule.clone(), ..other.clone() }
    }

    fn adopt(&self, rules: &Rules<R>) {
        self.places.adopt(&rules.places);
        self.lock().bounds = rules.bounds;
    }

    fn show_settings(rules: &Rules<R>, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("initial", &rules.places.limit).field("bounds", &rules.bounds).field("queue", &rules.places.patience);
    }

    /// The destinations with calls in flight.
    fn shown(&self) -> Option<Usage> {
        self.places.in_use()
    }
}
