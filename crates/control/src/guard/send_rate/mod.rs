//! The adaptive send rate: a rate limit that the server's refusals lower and successes raise again.
//!
//! `cubic` has the rule of the rate, `settings` the setters. Tokens and line are those of the rate limit.

mod cubic;
mod settings;

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::task::Waker;
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::guard::{Admit, Arrival, End, Guard, Health, Refused, Resume};

use super::line::Wakers;
use super::rate_limit::limiter::{Forgets, Limiter, Pass};
use super::rate_limit::{Limit, TOKEN};
use super::time::nanos;
use crate::destination_table::Entry;
use crate::keyed::{Hold, Keyed};
use crate::sync::Mutex;
use cubic::{Cubic, News};
use settings::Rules;

/// A rate of calls for each destination that follows its refusals, by the rule of AWS's adaptive retry mode.
///
/// # What goes wrong without it, and with it
///
/// *Without a send rate*, a client above its quota is refused again and again. Backoff spreads retries, but first
/// attempts go on.
///
/// *A rate that each refusal lowers* falls almost to zero if twenty calls are refused at one moment. Here a call that
/// was sent before the last cut does not lower the rate again.
///
/// # The rule
///
/// Nothing is limited before the first refusal. Then a bucket that holds the calls of one second is filled at a rate,
/// which refusals cut:
///
/// | outcome | the rate |
/// |---|---|
/// | [`Overloaded`](Health::Overloaded) | `0.7 w`; the ceiling *w* is the rate so far, or the measured rate if that is lower |
/// | [`Served`](Health::Served), *t* seconds after the last cut | `0.4 (t − K)³ + w`, with `K = ∛(0.75 w)`: *w* at *K* seconds, more after it |
/// | both | at most twice the measured rate, and at least one call in two seconds |
///
/// The measured rate is that of outcomes, in half seconds. At a refusal in the first half second it is measured as if
/// that were over: if the first call is refused, the rate is 1.4 calls in a second. Other failures do not move the
/// rate. A 503 is often an outage, so it does not. For a server that throttles with 503, add a classifier that returns
/// `Verdict::throttled`.
///
/// Calls without a token wait in line, as at a [`RateLimit`](crate::RateLimit).
///
/// If the [table](Self::max_destinations) is full, a destination without a call in flight leaves for a newcomer: one
/// that was never refused first, otherwise the one that was used least recently. The rate that was found is lost. If
/// each has a call in flight, calls to the newcomer are admitted without a rate.
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
///         rate.end(ticket, &End::judged(health, Duration::ZERO), now);
///     }
/// }
/// let limit = rate.limit("a.example");
/// assert!((40.0..90.0).contains(&limit.tokens_per_second()), "about 0.7 of 100: {limit:?}");
/// ```
#[derive(Clone)]
#[must_use = "a setter returns a new rate"]
pub struct SendRate {
    rules: Arc<ArcSwap<Rules>>,
    tenants: Arc<Keyed<Tenant>>,
}

/// The state of a destination. The cubic's lock is taken before the limiter's.
struct Tenant {
    limiter: Limiter,
    cubic: Mutex<Cubic>,
}

/// The proof that a send rate admitted a call or has it in line.
pub struct SendTicket {
    tenant: Hold<Tenant>,
    pass: Pass,
}

impl Tenant {
    fn new(rules: &Rules) -> Self {
        Self { limiter: Limiter::new(rules.rule), cubic: Mutex::default() }
    }

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
    /// Returns the rate of `destination`; infinite before its first refusal.
    pub fn limit(&self, destination: &str) -> Limit {
        let tenant = self.tenants.get(destination);
        tenant.map_or(Limit::INFINITE, |tenant| tenant.limiter.look(None).limit)
    }

    /// Returns the number of calls that wait for `destination`.
    pub fn waiting(&self, destination: &str) -> usize {
        self.tenants.get(destination).map_or(0, |tenant| tenant.limiter.look(None).waiting)
    }

    /// Adopts the queue of another rate and keeps the state.
    pub fn replace_settings(&self, with: &Self) {
        let max_destinations = self.rules.load().max_destinations;
        let rules = Arc::new(Rules { max_destinations, ..**with.rules.load() });
        let replace = || self.rules.store(Arc::clone(&rules));
        self.tenants.adopt(replace, |tenant| tenant.limiter.adopt(&rules.rule));
    }
}

impl Entry for Tenant {
    /// The rate that was found is lost.
    fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        let forgets = if forgets { Forgets::Rate } else { Forgets::Nothing };
        self.limiter.retire(now, forgets, is_idle)
    }
}

impl Guard for SendRate {
    type Ticket = SendTicket;

    #[inline]
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<SendTicket> {
        let create = |_: &Arc<str>| Tenant::new(&self.rules.load());
        let admitted = self.tenants.with(arrival.destination, arrival.now, create, |tenant| {
            let admitted = tenant.limiter.admit(arrival)?;
            Some(admitted.map(|pass| SendTicket { tenant: tenant.hold(), pass }))
        });
        admitted.unwrap_or_else(|| {
            Admit::Admitted(SendTicket { tenant: Hold::Nothing, pass: Pass::UNCOUNTED })
        })
    }

    fn end(&self, ticket: SendTicket, end: &End, now: Duration) -> Option<SendTicket> {
        let tenant = self.tenants.held(&ticket.tenant)?;
        match *end {
            End::Judged { health, after, .. } => {
                let news = match health {
                    Health::Overloaded => News::Refused,
                    Health::Served => News::Served,
                    _ => News::None,
                };
                tenant.record(news, now.saturating_sub(after), now);
            }
            End::Unsent => tenant.limiter.unsent(&ticket.pass, now),
            _ => {}
        }
        None
    }

    fn resume(&self, ticket: &mut SendTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        let Some(tenant) = self.tenants.held(&ticket.tenant) else { return Resume::Admitted };
        tenant.limiter.resume(&mut ticket.pass, arrival, waker)
    }

    /// The token is kept.
    fn renew(&self, ticket: SendTicket, _: &Arrival<'_>) -> Result<SendTicket, Refused> {
        Ok(ticket)
    }

    fn check(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        let tenant = self.tenants.get(arrival.destination);
        tenant.map_or(Ok(()), |tenant| tenant.limiter.check(arrival))
    }
}

impl fmt::Debug for SendTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendTicket").field("pass", &self.pass).finish_non_exhaustive()
    }
}
