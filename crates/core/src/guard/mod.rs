//! Admission control: guards admit or refuse every attempt, including the first.
//!
//! A [`Budget`](crate::Budget) limits retries. A [`Guard`] limits attempts: a circuit breaker, a rate limit, a
//! bulkhead. Guards need no runtime: time is an argument, and a waiting call is woken through its [`Waker`].
//!
//! | step of an attempt | method |
//! |---|---|
//! | the attempt arrives | [`Guard::admit`] |
//! | it waits and is polled | [`Guard::resume`] |
//! | it has waited for another guard | [`Guard::renew`] |
//! | it was served after a wait | [`Guard::record_latency`] |
//! | its caller's deadline ends it, or it would be queued | [`Guard::usual_latency`] |
//! | its response has begun, but may take a long time to end | [`Guard::is_probe`] |
//! | it has ended, or is not sent | [`Guard::end_ticket`], after [`Guard::times_success`] if it was served |
//! | the caller only needs a forecast | [`Guard::would_admit`] |
//!
//! A custom guard needs `admit` and `end_ticket`:
//!
//! ```
//! use std::sync::atomic::{AtomicBool, Ordering};
//! use std::time::Duration;
//! use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused};
//!
//! /// Refuses everything during maintenance.
//! struct Maintenance(AtomicBool);
//!
//! impl Guard for Maintenance {
//!     type Ticket = ();
//!     fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
//!         match self.0.load(Ordering::Relaxed) {
//!             true => Admit::Refused(Refused::new(GuardKind::named(&"maintenance window"), Reason::Isolated)),
//!             false => Admit::Admitted(()),
//!         }
//!     }
//!     fn end_ticket(&self, _: (), _: &End, _: Duration) -> Option<()> { None }
//! }
//!
//! let guard = Maintenance(AtomicBool::new(true));
//! let arrival = Arrival::new("https://example.com", Duration::ZERO);
//! assert!(matches!(guard.admit(&arrival), Admit::Refused(_)));
//! ```
//!
//! # The layer
//!
//! One layer, one future and one error type in `reattempt::guard` serve all guards:
//!
//! 1. `GuardLayer::http(guard)` takes one guard. Combine several in a pair, `(breaker, (limit, bulkhead))`, in the
//!    order in which they decide.
//! 2. `call` checks the deadline first: a call whose deadline has passed is not sent.
//! 3. It computes the destination, reads the clock once, and calls [`admit`](Guard::admit). The clock is read again at
//!    the end, unless the attempt succeeds and the guard [does not time successes](Guard::times_success).
//! 4. *Admitted*: the ready instance of the service is called. *Waiting*: the future holds the ticket and one timer;
//!    each poll calls [`resume`](Guard::resume), and the timer is set to the returned `until`. After the wait, the
//!    inner service is polled for readiness again.
//! 5. *Refused*: the error is a `BoxError` around [`Refused`]. gRPC calls get UNAVAILABLE, or RESOURCE_EXHAUSTED for a
//!    limit that the caller set itself.
//! 6. If the call waits or is not sent, a clone replaces the ready instance, because a ready instance may hold a
//!    permit.
//! 7. The future ends its ticket exactly once, even if it is dropped or panics. The ticket is *judged* at the response
//!    (gRPC: at the trailers). If the future is dropped earlier, the ticket is *abandoned* if the inner future has been
//!    polled, and *unsent* otherwise.
//! 8. An attempt that a time limit of an outer layer drops, or that is dropped at or after its deadline, is judged as
//!    unavailable, because it is a timeout. It is *abandoned* if the server had less time than the attempt had waited
//!    for the guard, or if the call's deadline left it less than the [usual latency](Guard::usual_latency), or less
//!    than 1 s if that is unknown. It is *ignored* if the source of the request body was pending.
//! 9. [`Health`] is derived from the classification. A success maps to `Served`, and a retryable failure to `Failed`,
//!    `Unavailable` or `Overloaded`. Permanent failures have their own table. An error in the caller's own body maps to
//!    `Ignored`. Custom classifiers change the classification, and therefore the health.
//! 10. If a guard needs the ticket until the end of the body, [`end_ticket`](Guard::end_ticket) returns it. The
//!     response body then ends the ticket as *over*.
//! 11. [`Refused`] is recognised before any classifier runs. No outer breaker, limit, throttle or budget counts it.
//! 12. The retry layer sends the attempt again only if [`Refused::wait`] is at most 5 s (1 s for a circuit breaker).
//!     The wait must also fit within the deadline and the elapsed-time limit. A request that is not repeatable is sent
//!     again only if no earlier hop of the attempt can have been processed. Hedges arrive
//!     [impatient](Arrival::impatient), so they do not wait. A refused hedge was not sent: its permit is returned, and
//!     no observer is notified of an attempt.
//! 13. Observers are notified of waiting and refused calls. State changes are reported through the guard's own
//!     callbacks.

mod arrival;
mod chain;
mod end;
mod erased;
mod refused;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

pub use arrival::{Admit, Arrival, Resume};
pub use chain::PairTicket;
pub use end::{BodyEnd, End, Health, Quota};
pub use erased::{SharedGuard, SharedTicket, erase};
pub use refused::{GuardKind, Reason, Refused};

use crate::Warning;

/// Admission control for every attempt, including the first.
///
/// A single guard serves all calls, from any thread. Each ticket that it returns is passed to
/// [`end_ticket`](Guard::end_ticket) exactly once, unless [`resume`](Guard::resume) or [`renew`](Guard::renew) refuses
/// the attempt.
///
/// A pair of guards is itself a guard: its second guard is called only if the first admits the attempt. `Arc<G>` and
/// `Option<G>` are guards too; `None` admits everything. [`erase`] gives all guards the same type.
#[expect(unused_variables, reason = "a default ignores its arguments")]
pub trait Guard: Send + Sync + 'static {
    /// The ticket that an admitted or queued attempt holds.
    type Ticket: Send + Sync + 'static;

    /// Decides whether to admit an arriving attempt.
    ///
    /// Never returns [`Admit::Waiting`] for an arrival that is not [patient](Arrival::patient).
    fn admit(&self, arrival: &Arrival<'_>) -> Admit<Self::Ticket>;

    /// Records the end of an attempt, whether or not it was sent.
    ///
    /// Returns the ticket if the guard needs it until the response body ends. The ticket is then passed to this method
    /// again, with [`End::Over`].
    fn end_ticket(&self, ticket: Self::Ticket, end: &End, now: Duration) -> Option<Self::Ticket>;

    /// Returns `false` if [`end_ticket`](Guard::end_ticket) does not use `now` for a served attempt whose response
    /// states no quota. The caller may then pass the time at which the attempt was sent, instead of reading the clock
    /// again. Default: `true`.
    fn times_success(&self, ticket: &Self::Ticket) -> bool {
        true
    }

    /// Returns `true` if the attempt is a probe, sent only to find out if the server has recovered. If the response is
    /// a stream, a probe is judged at its first message, because its end may be hours away. Default: `false`.
    fn is_probe(&self, ticket: &Self::Ticket) -> bool {
        false
    }

    /// Returns the name of the server that the guard chose for the attempt, for use in errors. Default: `None`.
    fn server(&self, ticket: &Self::Ticket) -> Option<Arc<str>> {
        None
    }

    /// Returns the usual latency of served attempts to the ticket's server, from sending to the response head, or
    /// `None` if it is unknown. Default: `None`.
    ///
    /// An attempt that a caller's deadline ends earlier is abandoned, and not a timeout. An attempt in a queue is not
    /// admitted with less time left.
    fn usual_latency(&self, ticket: &Self::Ticket, now: Duration) -> Option<Duration> {
        None
    }

    /// Records the latency of a served attempt that has waited in a queue, before its ticket ends. Default: does
    /// nothing.
    fn record_latency(&self, ticket: &Self::Ticket, latency: Duration) {}

    /// Decides whether a waiting attempt may be sent. Stores `waker`, and wakes it once the attempt may be sent.
    ///
    /// After [`Resume::Refused`] the ticket is no longer valid: it is not passed to [`end_ticket`](Guard::end_ticket).
    /// Default: admits the attempt.
    fn resume(&self, ticket: &mut Self::Ticket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        Resume::Admitted
    }

    /// Reconsiders an admitted attempt that has waited for another guard.
    ///
    /// Default: the ticket ends [unsent](End::Unsent), and the attempt arrives again as impatient. A guard with scarce
    /// places returns the ticket unchanged, so that the attempt keeps its place.
    ///
    /// # Errors
    ///
    /// Returns the refusal if the guard no longer admits the attempt. The ticket has then ended.
    fn renew(&self, ticket: Self::Ticket, arrival: &Arrival<'_>) -> Result<Self::Ticket, Refused> {
        drop(self.end_ticket(ticket, &End::Unsent, arrival.now));
        match self.admit(&arrival.impatient()) {
            Admit::Admitted(ticket) => Ok(ticket),
            Admit::Refused(refused) => Err(refused),
            Admit::Waiting(ticket) => {
                drop(self.end_ticket(ticket, &End::Unsent, arrival.now));
                Err(Refused::new(GuardKind::UNNAMED, Reason::Full))
            }
        }
    }

    /// Returns the decision that [`admit`](Guard::admit) would make, without reserving anything. Default: admits every
    /// attempt.
    ///
    /// # Errors
    ///
    /// Returns the refusal that an attempt would receive at this time.
    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        Ok(())
    }

    /// Returns a warning for each setting outside its recommended range. Default: no warnings.
    fn validate(&self) -> Vec<Warning> {
        Vec::new()
    }
}

impl<G: Guard + ?Sized> Guard for Arc<G> {
    type Ticket = G::Ticket;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<G::Ticket> {
        (**self).admit(arrival)
    }

    fn end_ticket(&self, ticket: G::Ticket, end: &End, now: Duration) -> Option<G::Ticket> {
        (**self).end_ticket(ticket, end, now)
    }

    #[inline]
    fn times_success(&self, ticket: &G::Ticket) -> bool {
        (**self).times_success(ticket)
    }

    fn is_probe(&self, ticket: &G::Ticket) -> bool {
        (**self).is_probe(ticket)
    }

    fn server(&self, ticket: &G::Ticket) -> Option<Arc<str>> {
        (**self).server(ticket)
    }

    fn usual_latency(&self, ticket: &G::Ticket, now: Duration) -> Option<Duration> {
        (**self).usual_latency(ticket, now)
    }

    fn record_latency(&self, ticket: &G::Ticket, latency: Duration) {
        (**self).record_latency(ticket, latency);
    }

    fn resume(&self, ticket: &mut G::Ticket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        (**self).resume(ticket, arrival, waker)
    }

    fn renew(&self, ticket: G::Ticket, arrival: &Arrival<'_>) -> Result<G::Ticket, Refused> {
        (**self).renew(ticket, arrival)
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        (**self).would_admit(arrival)
    }

    fn validate(&self) -> Vec<Warning> {
        (**self).validate()
    }
}
