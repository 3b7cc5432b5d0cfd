//! Type-erased guards, for lists of guards that are known only at run time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::any::Any;
use core::fmt;
use core::task::Waker;
use core::time::Duration;

use super::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused, Resume};
use crate::Warning;

/// A guard of any type, created by [`erase`]. A clone shares its state.
pub type SharedGuard = Arc<dyn Guard<Ticket = SharedTicket>>;

/// The ticket of a [`SharedGuard`]: a box with the inner guard's ticket.
pub struct SharedTicket(Box<dyn Any + Send + Sync>);

/// Erases a guard's type, for example if the guards are listed in a config file.
///
/// Each admitted attempt allocates once, and once more if its ticket is kept until the body ends. A zero-sized ticket
/// allocates nothing. A ticket from another guard has no effect.
///
/// ```
/// # use core::time::Duration;
/// # use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Reason, Refused};
/// use reattempt::guard::{SharedGuard, erase};
/// # use reattempt_core as reattempt;
/// # struct Open;
/// # impl Guard for Open {
/// #     type Ticket = ();
/// #     fn admit(&self, _: &Arrival<'_>) -> Admit<()> { Admit::Admitted(()) }
/// #     fn end_ticket(&self, _: (), _: &End, _: Duration) -> Option<()> { None }
/// # }
/// # struct Maintenance;
/// # impl Guard for Maintenance {
/// #     type Ticket = ();
/// #     fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
/// #         Admit::Refused(Refused::new(GuardKind::UNNAMED, Reason::Isolated))
/// #     }
/// #     fn end_ticket(&self, _: (), _: &End, _: Duration) -> Option<()> { None }
/// # }
///
/// let listed: Vec<SharedGuard> = vec![erase(Open), erase(Maintenance)];
/// // The first guard in the list decides first; `None` admits everything.
/// let all: Option<SharedGuard> = listed.into_iter().rev().reduce(|rest, first| erase((first, rest)));
/// let arrival = Arrival::new("https://one.example", Duration::ZERO);
/// assert!(matches!(all.admit(&arrival), Admit::Refused(_)));
/// ```
pub fn erase<G: Guard>(guard: G) -> SharedGuard {
    Arc::new(ErasedGuard(guard))
}

struct ErasedGuard<G>(G);

impl SharedTicket {
    fn new<T: Send + Sync + 'static>(ticket: T) -> Self {
        Self(Box::new(ticket))
    }
}

impl<G: Guard> Guard for ErasedGuard<G> {
    type Ticket = SharedTicket;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<SharedTicket> {
        self.0.admit(arrival).map(SharedTicket::new)
    }

    fn end_ticket(&self, ticket: SharedTicket, end: &End, now: Duration) -> Option<SharedTicket> {
        let own = ticket.0.downcast::<G::Ticket>().ok()?;
        self.0.end_ticket(*own, end, now).map(SharedTicket::new)
    }

    fn times_success(&self, ticket: &SharedTicket) -> bool {
        ticket.0.downcast_ref().is_none_or(|own| self.0.times_success(own))
    }

    fn is_probe(&self, ticket: &SharedTicket) -> bool {
        ticket.0.downcast_ref().is_some_and(|own| self.0.is_probe(own))
    }

    fn server(&self, ticket: &SharedTicket) -> Option<Arc<str>> {
        self.0.server(ticket.0.downcast_ref()?)
    }

    fn usual_latency(&self, ticket: &SharedTicket, now: Duration) -> Option<Duration> {
        self.0.usual_latency(ticket.0.downcast_ref()?, now)
    }

    fn record_latency(&self, ticket: &SharedTicket, latency: Duration) {
        if let Some(own) = ticket.0.downcast_ref() {
            self.0.record_latency(own, latency);
        }
    }

    fn resume(&self, ticket: &mut SharedTicket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        match ticket.0.downcast_mut() {
            Some(own) => self.0.resume(own, arrival, waker),
            None => Resume::Admitted,
        }
    }

    fn renew(&self, ticket: SharedTicket, arrival: &Arrival<'_>) -> Result<SharedTicket, Refused> {
        match ticket.0.downcast::<G::Ticket>() {
            Ok(own) => self.0.renew(*own, arrival).map(SharedTicket::new),
            Err(_) => Err(Refused::new(GuardKind::UNNAMED, Reason::Full)),
        }
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.0.would_admit(arrival)
    }

    fn validate(&self) -> Vec<Warning> {
        self.0.validate()
    }
}

impl fmt::Debug for SharedTicket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedTicket").finish_non_exhaustive()
    }
}
