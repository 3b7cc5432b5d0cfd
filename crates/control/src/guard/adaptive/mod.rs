//! The adaptive limit: a bulkhead whose limit follows the server's latencies and refusals.
//!
//! | file | content |
//! |---|---|
//! | `window` | the lock-free samples since the limit last moved |
//! | `rule` | the trait for rules, and three implementations |
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
use reattempt_core::snapshot::Part;
use reattempt_core::user_code;

use super::guard_type::guard;
use super::inspect;
use super::per_destination::{PerDestination, State};
use super::places::{PlaceNote, Places, Usage};
use super::usual_latency::UsualLatency;
use crate::destination_table::Entry;
use crate::sync::{Mutex, MutexGuard};
use rule::is_in_use;
use settings::{AdaptiveSettings, Bounds};
use window::SampleWindow;

pub use rule::{Aimd, Gradient2, LimitRule, Vegas};
pub use window::LimitWindow;

/// An adaptive limit on calls in flight per destination, which follows the server's capacity.
///
/// # Failures that it prevents
///
/// *A fixed limit* is too high after a server has lost half of its capacity, and too low after its capacity has
/// doubled.
///
/// *A rule that mistakes fast failures for low latency* raises the limit while the server is down. Here only served
/// calls are measured. *A rule that only counts calls* raises the limit to the maximum while the client is idle. Here a
/// limit does not grow while less than half of it is used. *A baseline measured under load* keeps the server's queue
/// long forever. Here baselines are measured again regularly.
///
/// # Rules
///
/// | rule | reacts to | suits |
/// |---|---|---|
/// | [`Aimd`] | dropped calls | servers that refuse early |
/// | [`Vegas`] | latency above a baseline that is regularly measured again | steady latencies |
/// | [`Gradient2`] | the trend of latencies | latencies that drift |
///
/// - A sample is a served call with the latency of its outcome, or a *dropped* call: [`Overloaded`](Health::Overloaded)
///   or [`Unavailable`](Health::Unavailable). A sample also records the number of calls in flight when its call
///   started. Other failures and abandoned calls are ignored.
/// - The limit moves when a window closes: once the window is 1 s old and has 50 samples, or at the latest after 30 s.
///   A call that started before the last move is not a sample. A single event therefore lowers the limit only once,
///   even if many calls time out.
/// - Limits range from 1 to 200 and start at 20 ([`bounds`](Self::bounds), [`initial`](Self::initial)).
/// - Places work as in a [`Bulkhead`](crate::Bulkhead): they are held until the end of the body, and calls can
///   [`queue`](Self::queue).
/// - If the [table](Self::max_destinations) is full, a new destination replaces one without a call in flight,
///   preferably one without samples, or else the least recently used one. The replaced destination loses its learned
///   limit. If every candidate has a call in flight, calls to the new destination are admitted without a limit.
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
    kind: "adaptive_limit",
    memory: "1.7 MB",
    replaced: "Limits stay, and rules with their states. A limit out of bounds moves when its window closes.",
}

/// A destination's places, with the window and the rule that move their limit.
struct MovingPlaces<R> {
    places: Places,
    window: SampleWindow,
    moving: Mutex<Moving<R>>,
}

/// The state that is updated when a window closes.
struct Moving<R> {
    rule: R,
    limit: f64,
    bounds: Bounds,
    /// The number of windows closed, which wraps.
    windows: u64,
}

impl<R: LimitRule> MovingPlaces<R> {
    #[inline]
    fn record(&self, note: PlaceNote, end: &End, now: Duration) {
        let (PlaceNote::Held { in_flight }, End::Judged { health, after, .. }) = (note, end) else {
            return;
        };
        let served = match health {
            Health::Served => true,
            Health::Overloaded | Health::Unavailable => false,
            _ => return,
        };
        if self.window.record(served, *after, in_flight, now) {
            self.close_for(note, now);
        }
    }

    /// Closes the window at the end of a call. The call's place is freed even if the user's rule panics. While the
    /// thread unwinds, the window stays open, and the next call closes it.
    #[cold]
    #[inline(never)]
    fn close_for(&self, note: PlaceNote, now: Duration) {
        user_code::notify(|| {
            let place = FreedOnPanic { places: &self.places, note, now };
            self.close(now);
            mem::forget(place);
        });
    }

    fn close(&self, now: Duration) {
        let (mut rule, limit, number, window) = {
            let mut moving = self.lock();
            // Another thread may have closed it.
            let Some(window) = self.window.close(now) else { return };
            moving.windows = moving.windows.wrapping_add(1);
            (moving.rule.clone(), moving.limit, moving.windows, window)
        };
        // The lock is not held, because the rule and the wakers are user code.
        let next = rule.next_limit(limit, &window);
        let grows = next > limit;
        let moves = next.is_finite() && (!grows || is_in_use(limit, &window));
        let _before = {
            let mut moving = self.lock();
            if moving.windows != number {
                // A later window closed while the rule ran.
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

/// A call's place while the user's rule runs. It is freed if the rule panics.
struct FreedOnPanic<'a> {
    places: &'a Places,
    note: PlaceNote,
    now: Duration,
}

impl Drop for FreedOnPanic<'_> {
    #[cold]
    fn drop(&mut self) {
        self.places.end_call(self.note, &End::Over(BodyEnd::Dropped), self.now);
    }
}

/// Rounds the limit to whole calls.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the limit is within bounds of 32 bits")]
fn whole(limit: f64) -> u32 {
    limit as u32
}

impl<R: LimitRule> AdaptiveLimit<R> {
    /// Returns the limit for `destination`, and the calls that use it at `now`.
    pub fn usage_at(&self, destination: &str, now: Duration) -> Usage {
        self.0.read(destination, |state| state.places.usage(now))
    }
}

impl<R: LimitRule> Entry for MovingPlaces<R> {
    /// Retires the entry if it is idle. If `forgets`, its learned limit may be discarded.
    fn retire(&self, _: Duration, forgets: bool, _: &dyn Fn() -> bool) -> bool {
        (forgets || self.window.is_new()) && self.places.retire()
    }
}

impl<R: LimitRule> State for MovingPlaces<R> {
    type Settings = AdaptiveSettings<R>;
    type Note = PlaceNote;
    type Shown = Usage;

    const UNCOUNTED: PlaceNote = PlaceNote::Held { in_flight: 0 };
    const LISTED: &'static str = "in_use";

    fn new(settings: &AdaptiveSettings<R>, _: &Arc<str>) -> Self {
        let limit = f64::from(settings.places.limit);
        let moving = Moving { rule: settings.rule.clone(), limit, bounds: settings.bounds, windows: 0 };
        Self { places: Places::new(&settings.places), window: SampleWindow::new(), moving: Mutex::new(moving) }
    }

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<PlaceNote>> {
        self.places.admit(arrival)
    }

    #[inline(always)]
    fn record_end(&self, note: &PlaceNote, end: &End, now: Duration) -> Option<PlaceNote> {
        self.record(*note, end, now);
        self.places.end_call(*note, end, now)
    }

    const TIMES_SUCCESS: Option<bool> = Some(true);

    fn latency(&self) -> Option<&UsualLatency> {
        Some(&self.places.latency)
    }

    fn resume(&self, note: &mut PlaceNote, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        self.places.resume(note, arrival, waker)
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.places.would_admit(arrival)
    }

    /// Returns the new settings with the old rule, which keeps its state.
    fn merged(own: &AdaptiveSettings<R>, other: &AdaptiveSettings<R>) -> AdaptiveSettings<R> {
        AdaptiveSettings { rule: own.rule.clone(), ..other.clone() }
    }

    fn adopt(&self, settings: &AdaptiveSettings<R>) {
        self.places.adopt(&settings.places);
        self.lock().bounds = settings.bounds;
    }

    fn show_settings(settings: &AdaptiveSettings<R>, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("initial", &settings.places.limit)
            .field("bounds", &settings.bounds)
            .field("queue", &settings.places.patience);
    }

    /// Shows a destination that has calls in flight.
    fn shown(&self) -> Option<Usage> {
        self.places.in_use()
    }

    fn inspect_settings(settings: &AdaptiveSettings<R>, part: Part) -> Part {
        let part = part.field("initial", settings.places.limit);
        inspect::queue(settings.places.patience, settings.bounds.inspect(part))
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        inspect::usage(self.places.usage(now), part)
    }
}
