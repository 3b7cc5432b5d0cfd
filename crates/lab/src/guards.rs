//! The guards of one simulated client: any number of them, of any kind.

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use reattempt::guard::Refused;
use reattempt::guard::contract::{Admit, Arrival, BodyEnd, End, Guard};

use crate::policy::{GuardKind, GuardWord};

/// The guards of one client, in the order in which they decide.
///
/// No attempt waits, and a response body ends with its head.
#[derive(Clone, Default)]
pub(crate) struct Guards(Vec<Arc<dyn AnyGuard>>);

impl Guards {
    /// Creates the guards of the client with this number for its random streams.
    pub(crate) fn new(words: &[GuardWord], seed: u64) -> Self {
        Self(words.iter().map(|word| of_word(word, seed)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns a guard of one state. A setter makes a state of its own.
fn of_word(word: &GuardWord, seed: u64) -> Arc<dyn AnyGuard> {
    match word.kind.clone() {
        GuardKind::Breaker(breaker) => Arc::new(breaker.shared(true).seed(seed)),
        GuardKind::RateLimit(limit) => Arc::new(limit.shared(true)),
        GuardKind::Bulkhead(bulkhead) => Arc::new(bulkhead.shared(true)),
        GuardKind::Aimd(limit) => Arc::new(limit.shared(true)),
        GuardKind::Vegas(limit) => Arc::new(limit.shared(true)),
        GuardKind::Gradient2(limit) => Arc::new(limit.shared(true)),
        GuardKind::Throttle(throttle) => Arc::new(throttle.shared(true).seed(seed)),
        GuardKind::Pause(pause) => Arc::new(pause.shared(true)),
    }
}

/// A ticket of any guard.
type AnyTicket = Box<dyn Any + Send + Sync>;

/// A guard without the type of its ticket.
trait AnyGuard: Send + Sync {
    fn take(&self, arrival: &Arrival<'_>) -> Result<AnyTicket, Refused>;
    fn give_back(&self, ticket: AnyTicket, end: &End, now: Duration);
}

impl<G: Guard> AnyGuard for G {
    fn take(&self, arrival: &Arrival<'_>) -> Result<AnyTicket, Refused> {
        match self.admit(&arrival.impatient()) {
            Admit::Admitted(ticket) | Admit::Waiting(ticket) => Ok(Box::new(ticket)),
            Admit::Refused(refused) => Err(refused),
        }
    }

    fn give_back(&self, ticket: AnyTicket, end: &End, now: Duration) {
        let Ok(ticket) = ticket.downcast::<G::Ticket>() else { return };
        if let Some(held) = self.end_ticket(*ticket, end, now) {
            drop(self.end_ticket(held, &End::Over(BodyEnd::Complete), now));
        }
    }
}

/// The tickets of all guards.
pub(crate) type Tickets = Vec<AnyTicket>;

impl Guard for Guards {
    type Ticket = Tickets;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<Tickets> {
        let mut tickets = Vec::with_capacity(self.0.len());
        for guard in &self.0 {
            match guard.take(arrival) {
                Ok(ticket) => tickets.push(ticket),
                Err(refused) => {
                    self.end_ticket(tickets, &End::Unsent, arrival.now);
                    return Admit::Refused(refused);
                }
            }
        }
        Admit::Admitted(tickets)
    }

    fn end_ticket(&self, tickets: Tickets, end: &End, now: Duration) -> Option<Tickets> {
        self.0.iter().zip(tickets).for_each(|(guard, ticket)| guard.give_back(ticket, end, now));
        None
    }
}
