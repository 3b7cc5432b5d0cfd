//! The adaptive send rate: a rate limit that a server's refusals lower and successes raise again.
//!
//! `cubic` contains the rule for the rate, and `settings` the setters. The tokens and the queue are those of the rate
//! limit.

mod cubic;
mod settings;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, Health, Refused, Resume};
use reattempt_core::snapshot::Part;

use super::guard_type::guard;
use super::inspect;
use super::per_destination::{PerDestination, State};
use super::rate_limit::limiter::{Forgets, Limiter, LimiterNote, LimiterSettings, Look};
use super::rate_limit::{Limit, TOKEN};
use super::time::nanos;
use super::usual_latency::UsualLatency;
use super::wait_queue::Wakers;
use crate::destination_table::Entry;
use crate::sync::Mutex;
use cubic::{Cubic, News};

/// An adaptive send rate per destination, which reacts to refusals like AWS's adaptive retry mode.
///
/// # Failures that it prevents
///
/// *Without a send rate*, a client that exceeds its quota is refused again and again. Backoff spreads out retries, but
/// not first attempts.
///
/// *A rate lowered by every refusal* drops almost to zero if twenty calls are refused at the same time. Here a call
/// sent before the last cut does not lower the rate again.
///
/// # The rule
///
/// Nothing is limited before the first refusal. After that, a bucket with one second's worth of tokens is refilled at
/// the rate, which further refusals cut:
///
/// | outcome | the rate |
/// |---|---|
/// | [`Overloaded`](Health::Overloaded), [`Unavailable`](Health::Unavailable) with a wait | `0.7 w`; the ceiling *w* is the previous rate, or the measured rate if that is lower |
/// | [`Served`](Health::Served), *t* seconds after the last cut | `0.4 (t − K)³ + w`, with `K = ∛(0.75 w)`: *w* after *K* seconds, then more |
/// | both | at most twice the measured rate, and at least one call every two seconds |
///
/// The measured rate is the rate of outcomes, measured every half second. A refusal in the first half second is
/// measured as if that half second were over. If the first call is refused, the rate is therefore 1.4 calls per second.
/// A 503 with a wait (`Retry-After`) counts as a refusal. Other failures do not change the rate. Neither does a 503
/// without a wait, which often means an outage. For a server that throttles with such a 503, add a classifier that
/// returns `Verdict::throttled`.
///
/// Calls without a token wait in the queue, as in a [`RateLimit`](crate::RateLimit).
///
/// If the [table](Self::max_destinations) is full, a new destination replaces one without a call in flight, preferably
/// one that was never refused, or else the least recently used one. The replaced destination loses its learned rate. If
/// every candidate has a call in flight, calls to the new destination are admitted without a rate.
///
/// ```
/// use std::time::Duration;
/// # use reattempt_control::SendRate;
/// # use reattempt_core::guard::{Admit, Arrival, End, Guard, Health};
///
/// let rate = SendRate::new();
/// for call in 0..100 {
///     let now = Duration::from_millis(1000 + 10 * call);
///     if let Admit::Admitted(ticket) = rate.admit(&Arrival::new("a.example", now)) {
///         let health = if call == 99 { Health::Overloaded } else { Health::Served };
///         rate.end_ticket(ticket, &End::judged(health, Duration::ZERO), now);
///     }
/// }
/// let limit = rate.limit("a.example");
/// assert!((40.0..90.0).contains(&limit.tokens_per_second()), "about 0.7 of 100: {limit:?}");
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new rate"]
pub struct SendRate(PerDestination<MovingLimiter>);

guard! {
    SendRate, SendTicket, MovingLimiter,
    kind: "send_rate",
    memory: "0.4 MB",
    replaced: "The rates stay.",
}

/// A destination's tokens, and the cubic that sets their rate. Lock order: the cubic, then the limiter.
struct MovingLimiter {
    limiter: Limiter,
    cubic: Mutex<Cubic>,
}

impl MovingLimiter {
    fn record(&self, news: News, sent: Duration, now: Duration) {
        let first = {
            let mut cubic = self.cubic.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(rate) = cubic.record(news, sent, now) else { return };
            self.limiter.change(now, true, |tokens| {
                let limit = Limit::clamped(rate);
                tokens.set(limit, limit.minted(nanos(SECOND), 0).0.max(TOKEN));
            })
        };
        first.into_iter().for_each(Wakers::wake);
    }
}

const SECOND: Duration = Duration::from_secs(1);

impl SendRate {
    /// Returns the rate of `destination`, which is infinite before its first refusal.
    pub fn limit(&self, destination: &str) -> Limit {
        self.0.read(destination, |state| state.limiter.look(None).limit)
    }

    /// Returns the number of calls waiting for `destination`.
    pub fn waiting(&self, destination: &str) -> usize {
        self.0.read(destination, |state| state.limiter.look(None).waiting)
    }
}

impl Entry for MovingLimiter {
    /// Retires the entry if it is idle. If `forgets`, its learned rate may be discarded.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let forgets = if forgets { Forgets::Rate } else { Forgets::Nothing };
        self.limiter.retire(now, forgets, is_idle)
    }
}

impl State for MovingLimiter {
    type Settings = LimiterSettings;
    type Note = LimiterNote;
    type Shown = Look;

    const UNCOUNTED: LimiterNote = LimiterNote::UNCOUNTED;
    const LISTED: &'static str = "limited";

    fn new(settings: &LimiterSettings, _: &Arc<str>) -> Self {
        Self { limiter: Limiter::new(*settings), cubic: Mutex::default() }
    }

    #[inline(always)]
    fn admit(&self, arrival: &Arrival<'_>) -> Option<Admit<LimiterNote>> {
        self.limiter.admit(arrival)
    }

    fn record_end(&self, note: &LimiterNote, end: &End, now: Duration) -> Option<LimiterNote> {
        match *end {
            End::Judged { health, after, .. } => {
                let news = match health {
                    Health::Overloaded => News::Refused,
                    Health::Unavailable if end.requested_wait().is_some() => News::Refused,
                    Health::Served => News::Served,
                    _ => News::None,
                };
                self.record(news, now.saturating_sub(after), now);
            }
            End::Unsent => self.limiter.unsent(note, now),
            _ => {}
        }
        None
    }

    const TIMES_SUCCESS: Option<bool> = Some(true);

    fn latency(&self) -> Option<&UsualLatency> {
        Some(&self.limiter.latency)
    }

    fn resume(&self, note: &mut LimiterNote, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        self.limiter.resume(note, arrival, waker)
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.limiter.would_admit(arrival)
    }

    fn adopt(&self, settings: &LimiterSettings) {
        self.limiter.adopt(settings);
    }

    fn show_settings(settings: &LimiterSettings, f: &mut fmt::DebugStruct<'_, '_>) {
        f.field("queue", &settings.patience);
    }

    /// Shows a destination that has a limited rate.
    fn shown(&self) -> Option<Look> {
        let look = self.limiter.look(None);
        (!look.limit.is_infinite()).then_some(look)
    }

    fn inspect_settings(settings: &LimiterSettings, part: Part) -> Part {
        inspect::queue(settings.patience, part)
    }

    fn inspect(&self, now: Duration, part: Part) -> Part {
        self.limiter.look(Some(now)).inspect(part)
    }
}
