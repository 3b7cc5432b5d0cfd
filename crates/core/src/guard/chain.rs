//! Composite guards: a pair, and an optional guard.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::task::Waker;
use core::time::Duration;

use super::{Admit, Arrival, BodyEnd, End, Guard, Refused, Resume};
use crate::Warning;

/// The tickets of a pair of guards.
#[derive(Debug)]
pub struct PairTicket<A, B> {
    first: Option<A>,
    second: Option<B>,
    /// `true` until the first guard admits the attempt.
    first_waits: bool,
}

/// One guard's ticket in a pair, which is ended if the other guard panics.
struct EndedOnPanic<'a, G: Guard> {
    guard: &'a G,
    ticket: Option<G::Ticket>,
    end: &'a End,
    now: Duration,
}

impl<'a, G: Guard> EndedOnPanic<'a, G> {
    #[inline]
    const fn new(guard: &'a G, ticket: Option<G::Ticket>, end: &'a End, now: Duration) -> Self {
        Self { guard, ticket, end, now }
    }

    #[inline]
    fn take(mut self) -> Option<G::Ticket> {
        self.ticket.take()
    }
}

impl<G: Guard> Drop for EndedOnPanic<'_, G> {
    #[inline]
    fn drop(&mut self) {
        let held = self.ticket.take().and_then(|own| self.guard.end_ticket(own, self.end, self.now));
        if let Some(held) = held {
            drop(self.guard.end_ticket(held, &OVER, self.now));
        }
    }
}

const OVER: End = End::Over(BodyEnd::Dropped);

impl<A: Guard, B: Guard> Guard for (A, B) {
    type Ticket = PairTicket<A::Ticket, B::Ticket>;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<Self::Ticket> {
        let first = match self.0.admit(arrival) {
            Admit::Admitted(first) => first,
            Admit::Waiting(first) => {
                let first = Some(first);
                return Admit::Waiting(PairTicket { first, second: None, first_waits: true });
            }
            Admit::Refused(refused) => return Admit::Refused(refused),
        };
        let first = EndedOnPanic::new(&self.0, Some(first), &End::Unsent, arrival.now);
        // A refusal drops the first ticket, which ends it.
        self.1.admit(arrival).map(|second| PairTicket { first: first.take(), second: Some(second), first_waits: false })
    }

    fn end_ticket(&self, ticket: Self::Ticket, end: &End, now: Duration) -> Option<Self::Ticket> {
        let second = EndedOnPanic::new(&self.1, ticket.second, end, now);
        let first = ticket.first.and_then(|first| self.0.end_ticket(first, end, now));
        let first = EndedOnPanic::new(&self.0, first, &OVER, now);
        let second = second.take().and_then(|second| self.1.end_ticket(second, end, now));
        let first = first.take();
        (first.is_some() || second.is_some()).then_some(PairTicket { first, second, first_waits: false })
    }

    #[inline]
    fn times_success(&self, ticket: &Self::Ticket) -> bool {
        ticket.first.as_ref().is_some_and(|first| self.0.times_success(first))
            || ticket.second.as_ref().is_some_and(|second| self.1.times_success(second))
    }

    fn is_probe(&self, ticket: &Self::Ticket) -> bool {
        ticket.first.as_ref().is_some_and(|first| self.0.is_probe(first))
            || ticket.second.as_ref().is_some_and(|second| self.1.is_probe(second))
    }

    fn server(&self, ticket: &Self::Ticket) -> Option<Arc<str>> {
        let first = ticket.first.as_ref().and_then(|first| self.0.server(first));
        first.or_else(|| self.1.server(ticket.second.as_ref()?))
    }

    /// Returns the first guard's value, or else the second's.
    fn usual_latency(&self, ticket: &Self::Ticket, now: Duration) -> Option<Duration> {
        let first = ticket.first.as_ref().and_then(|first| self.0.usual_latency(first, now));
        first.or_else(|| self.1.usual_latency(ticket.second.as_ref()?, now))
    }

    fn record_latency(&self, ticket: &Self::Ticket, latency: Duration) {
        ticket.first.iter().for_each(|first| self.0.record_latency(first, latency));
        ticket.second.iter().for_each(|second| self.1.record_latency(second, latency));
    }

    fn resume(&self, ticket: &mut Self::Ticket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        if ticket.first_waits {
            match ticket.first.as_mut().map(|first| self.0.resume(first, arrival, waker)) {
                None | Some(Resume::Admitted) => ticket.first_waits = false,
                Some(Resume::Refused(refused)) => {
                    ticket.first = None;
                    return Resume::Refused(refused);
                }
                Some(waiting) => return waiting,
            }
            match self.1.admit(arrival) {
                Admit::Admitted(second) => {
                    ticket.second = Some(second);
                    return Resume::Admitted;
                }
                Admit::Waiting(second) => ticket.second = Some(second),
                Admit::Refused(refused) => return self.refuse(ticket, refused, arrival.now),
            }
        }
        match ticket.second.as_mut().map(|second| self.1.resume(second, arrival, waker)) {
            Some(waiting @ Resume::Waiting { .. }) => waiting,
            Some(Resume::Refused(refused)) => {
                ticket.second = None;
                self.refuse(ticket, refused, arrival.now)
            }
            None | Some(Resume::Admitted) => self.renew_first(ticket, arrival),
        }
    }

    fn renew(&self, ticket: Self::Ticket, arrival: &Arrival<'_>) -> Result<Self::Ticket, Refused> {
        let PairTicket { first, second, first_waits } = ticket;
        // A refusal drops the other ticket, which ends it.
        let second = EndedOnPanic::new(&self.1, second, &End::Unsent, arrival.now);
        let first = first.map(|first| self.0.renew(first, arrival)).transpose()?;
        let first = EndedOnPanic::new(&self.0, first, &End::Unsent, arrival.now);
        let second = second.take().map(|second| self.1.renew(second, arrival)).transpose()?;
        Ok(PairTicket { first: first.take(), second, first_waits })
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.0.would_admit(arrival)?;
        self.1.would_admit(arrival)
    }

    fn validate(&self) -> Vec<Warning> {
        [self.0.validate(), self.1.validate()].concat()
    }
}

/// Steps shared by several methods of a pair.
trait Pair: Guard {
    /// Ends both tickets, because one guard refused.
    fn refuse(&self, ticket: &mut Self::Ticket, refused: Refused, now: Duration) -> Resume;
    /// Requests a new decision from the first guard after waiting for the second one.
    fn renew_first(&self, ticket: &mut Self::Ticket, arrival: &Arrival<'_>) -> Resume;
}

impl<A: Guard, B: Guard> Pair for (A, B) {
    fn refuse(&self, ticket: &mut Self::Ticket, refused: Refused, now: Duration) -> Resume {
        if let Some(first) = ticket.first.take() {
            drop(self.0.end_ticket(first, &End::Unsent, now));
        }
        if let Some(second) = ticket.second.take() {
            drop(self.1.end_ticket(second, &End::Unsent, now));
        }
        Resume::Refused(refused)
    }

    fn renew_first(&self, ticket: &mut Self::Ticket, arrival: &Arrival<'_>) -> Resume {
        if let Some(first) = ticket.first.take() {
            match self.0.renew(first, arrival) {
                Ok(first) => ticket.first = Some(first),
                Err(refused) => return self.refuse(ticket, refused, arrival.now),
            }
        }
        Resume::Admitted
    }
}

impl<G: Guard> Guard for Option<G> {
    type Ticket = Option<G::Ticket>;

    fn admit(&self, arrival: &Arrival<'_>) -> Admit<Self::Ticket> {
        self.as_ref().map_or(Admit::Admitted(None), |guard| guard.admit(arrival).map(Some))
    }

    fn end_ticket(&self, ticket: Self::Ticket, end: &End, now: Duration) -> Option<Self::Ticket> {
        let held = self.as_ref().zip(ticket).and_then(|(guard, ticket)| guard.end_ticket(ticket, end, now));
        held.map(Some)
    }

    #[inline]
    fn times_success(&self, ticket: &Self::Ticket) -> bool {
        self.as_ref().zip(ticket.as_ref()).is_some_and(|(guard, ticket)| guard.times_success(ticket))
    }

    fn is_probe(&self, ticket: &Self::Ticket) -> bool {
        let own = self.as_ref().zip(ticket.as_ref());
        own.is_some_and(|(guard, ticket)| guard.is_probe(ticket))
    }

    fn server(&self, ticket: &Self::Ticket) -> Option<Arc<str>> {
        self.as_ref()?.server(ticket.as_ref()?)
    }

    fn usual_latency(&self, ticket: &Self::Ticket, now: Duration) -> Option<Duration> {
        self.as_ref()?.usual_latency(ticket.as_ref()?, now)
    }

    fn record_latency(&self, ticket: &Self::Ticket, latency: Duration) {
        if let Some((guard, ticket)) = self.as_ref().zip(ticket.as_ref()) {
            guard.record_latency(ticket, latency);
        }
    }

    fn resume(&self, ticket: &mut Self::Ticket, arrival: &Arrival<'_>, waker: &Waker) -> Resume {
        match self.as_ref().zip(ticket.as_mut()) {
            Some((guard, ticket)) => guard.resume(ticket, arrival, waker),
            None => Resume::Admitted,
        }
    }

    fn renew(&self, ticket: Self::Ticket, arrival: &Arrival<'_>) -> Result<Self::Ticket, Refused> {
        match self.as_ref().zip(ticket) {
            Some((guard, ticket)) => guard.renew(ticket, arrival).map(Some),
            None => Ok(None),
        }
    }

    fn would_admit(&self, arrival: &Arrival<'_>) -> Result<(), Refused> {
        self.as_ref().map_or(Ok(()), |guard| guard.would_admit(arrival))
    }

    fn validate(&self) -> Vec<Warning> {
        self.as_ref().map(Guard::validate).unwrap_or_default()
    }
}
