//! The adaptive throttle, with which a client sends fewer calls while the server refuses many.
//!
//! `window` contains the counts, and `settings` the setters.

mod settings;
mod window;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, GuardKind, Health, Reason, Refused, Resume};
use reattempt_core::snapshot::Part;

use super::guard_type::guard;
use super::per_destination::{PerDestination, State};
use crate::destination_table::Entry;
use crate::millionths::{MILLION, units};
use crate::sync::{Mutex, MutexGuard};
use settings::{RefusalRule, ThrottleSettings};
use window::{RequestWindow, Requests};

/// An adaptive throttle per destination: the more calls the server refuses, the fewer are sent.
///
/// # Failures that it prevents
///
/// *Without a throttle*, an overloaded server spends its time on refusals. If a refusal costs half as much as a
/// response, a server at twice its capacity has no time left for responses.
///
/// *A throttle without a minimum number of requests* refuses half of the calls after one failure. Here nothing is
/// refused below 10 requests or below 5 per second.
///
/// # The rule
///
/// A call is refused with probability `max(0, (requests − K · accepts) / (requests + 1))`, but at most 0.9. Both counts
/// cover the last 2 minutes. With K = 2, the server receives about twice as many calls as it accepts, so the client
/// soon notices when the server accepts more.
///
/// - Requests are counted when they arrive, including those that the throttle refuses.
/// - Every outcome other than [`Overloaded`](Health::Overloaded) and [`Unavailable`](Health::Unavailable) is an accept,
///   including a 500. Calls in flight and abandoned calls also count as accepts.
/// - A refusal has no known wait, because the next call may be admitted.
/// - If the [table](Self::max_destinations) is full, a new destination replaces one without a call in flight,
///   preferably one without counts, or else the least recently used one. The counts of the replaced destination are
///   discarded, so ten more calls are sent even if the server refuses them. If every candidate has a call in flight,
///   calls to the new destination are admitted without being counted.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::Throttle;
/// # use reattempt_core::guard::{Admit, Arrival, End, Guard, Health};
///
/// let throttle = Throttle::new();
/// let now = Duration::from_secs(100);
/// for _ in 0..100 {
///     if let Admit::Admitted(ticket) = throttle.admit(&Arrival::new("a.example", now)) {
///         throttle.end_ticket(ticket, &End::judged(Health::Overloaded, Duration::ZERO), now);
///     }
/// }
/// assert!(throttle.counts_at("a.example", now).probability > 0.8);
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new throttle"]
pub struct Throttle(PerDestination<ThrottleState>);

guard! {
    Throttle, ThrottleTicket, ThrottleState,
    kind: "throttle",
    memory: "0.4 MB",
    replaced: "The counts are cleared if the window has another length.",
}

/// A destination's counts, shared by threads.
struct ThrottleState(Mutex<Counted>);

struct Counted {
    window: RequestWindow,
    rule: RefusalRule,
    /// The state of the random number generator (xorshift). Never 0.
    random: u64,
    retired: bool,
}

/// A throttle's counts for one destination, and the resulting probability.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct ThrottleCounts {
    /// Requests in the window, including those that the throttle refused.
    pub requests: u32,
    /// Requests that neither the server nor the throttle refused.
    pub accepts: u32,
    /// The probability of refusing the next request, from 0 to 1.
    pub probability: f64,
}

impl Counted {
    /// Returns the requests beyond K times the accepts, in millionths, or 0 while the throttle is inactive.
    #[inline]
    fn excess(&self) -> u64 {
        let total = self.window.total();
        if total.refused == 0 {
            return 0;
        }
        let accepted = u64::from(total.accepts()) * self.rule.multiplier;
        let excess = (u64::from(total.all) * MILLION).saturating_sub(accepted);
        let is_active = || total.all >= self.rule.min_requests && self.window.is_at_rate(self.rule.min_rate);
        if excess > 0 && is_active() { excess } else { 0 }
    }

    /// Returns the probability of a refusal, as a fraction of 2³².
    fn probability(&self) -> u64 {
        let excess = u128::from(self.excess()) << 32;
        let requests = (u128::from(self.window.total().all) + 1) * u128::from(MILLION);
        let most = (self.rule.max_probability << 32) / MILLION;
        u64::try_from(excess / requests).unwrap_or(u64::MAX).min(most)
    }

    #[cold]
    fn refuses_by_chance(&mut self) -> bool {
        let probability = self.probability();
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random >> 32 < probability
    }

    /// Counts a call. Returns `None` if the state was removed from the table.
    #[inline]
    fn admit(&mut self, now: Duration) -> Option<Admit<BucketAge>> {
        if self.retired {
            return None;
        }
        self.window.advance(now);
        let is_refused = self.excess() > 0 && self.refuses_by_chance();
        let age = self.window.request();
        if is_refused {
            self.window.refuse(age);
            return Some(Admit::Refused(REFUSED));
        }
        Some(Admit::Admitted(BucketAge(age)))
    }
}

const REFUSED: Refused = Refused::new(GuardKind::THROTTLE, Reason::Shed);

/// The age of the bucket in which a call was counted.
#[derive(Debug, Clone, Copy)]
struct BucketAge(u64);

impl ThrottleState {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[allow(clippy::cast_precision_loss, reason = "the probability has 32 bits")]
    fn counts(&self, now: Duration) -> ThrottleCounts {
        let mut counted = self.lock();
        counted.window.advance(now);
        let total = counted.window.total();
        let probability = counted.probability() as f64 / (1_u64 << 32) as f64;
        ThrottleCounts { requests: total.all, accepts: total.accepts(), probability }
    }
}

impl Throttle {
    /// Returns the counts for `destination` at `now`.
    pub fn counts_at(&self, destination: &str, now: Duration) -> ThrottleCounts {
        self.0.read(destination, |tally| tally.counts(now))
    }
}

impl Entry for ThrottleState {
    /// Retires the entry if it is idle. If `forgets`, its counts may be discarded.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let mut counted = self.lock();
        counted.window.advance(now);
        let is_new = counted.window.total() == Requests::default();
        counted.retired = (forgets || is_new) && is_idle();
        counted.retired
    }
}

impl State for ThrottleState {
    type Settings = ThrottleSettings;
    type Note = BucketAge;
    type Shown = Requests;

    const UNCOUNTED: BucketAge = BucketAge(0);
    const LISTED: &'static str = "shedding";

    fn new(settings: &ThrottleSettings, destination: &Arc<str>) -> Self {
        let window = RequestWindow::new(settings.window);
        // Spreads out similar seeds.
        let random = settings.seed_for(destination).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        Self(Mutex::new(Counted { window, rule: settings.rule, random, retired: false }))
    }

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<BucketAge>> {
        self.lock().admit(arrival.now)
    }

    #[inline(always)]
    fn record_end(&self, age: &BucketAge, end: &End, now: Duration) -> Option<BucketAge> {
        let record = match end {
            End::Judged { health: Health::Overloaded | Health::Unavailable, .. } => RequestWindow::refuse,
            End::Unsent => RequestWindow::take_back,
            // An accept was already counted on arrival.
            _ => return None,
        };
        let mut counted = self.lock();
        counted.window.advance(now);
        record(&mut counted.window, age.0);
        None
    }

    fn adopt(&self, settings: &ThrottleSettings) {
        let mut counted = self.lock();
        counted.rule = settings.rule;
        counted.window.adopt(settings.window);
    }

    fn show_settings(settings: &ThrottleSettings, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("rule", &settings.rule).field("window", &settings.window);
    }

    /// Shows a destination for which some calls are refused, as of its last call.
    fn shown(&self) -> Option<Requests> {
        let counted = self.lock();
        (counted.excess() > 0).then(|| counted.window.total())
    }

    fn inspect_settings(settings: &ThrottleSettings, part: Part) -> Part {
        part.field("multiplier", units(settings.rule.multiplier.cast_signed()))
            .field("max_probability", units(settings.rule.max_probability.cast_signed()))
            .field("window", settings.window)
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        let counts = self.counts(now);
        part.field("requests", counts.requests)
            .field("accepts", counts.accepts)
            .field("probability", counts.probability)
    }
}
