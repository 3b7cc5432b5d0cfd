//! Helpers for the tests of several guards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use reattempt_core::guard::{Admit, Arrival, End, Guard, Reason, Refused, Resume};

pub(crate) const HOST: &str = "https://a.example";
pub(crate) const SECOND: Duration = Duration::from_secs(1);
pub(crate) const NOW: Duration = Duration::from_secs(1000);

/// Returns the time `millis` milliseconds after the start.
pub(crate) fn at(millis: u64) -> Duration {
    NOW + Duration::from_millis(millis)
}

/// A waker that counts its wakes.
#[derive(Default)]
pub(crate) struct Counting(AtomicU32);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counting {
    pub(crate) fn woken(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn admit<G: Guard>(guard: &G, now: Duration) -> Result<G::Ticket, Refused> {
    match guard.admit(&Arrival::new(HOST, now).impatient()) {
        Admit::Admitted(ticket) => Ok(ticket),
        Admit::Refused(refused) => Err(refused),
        Admit::Waiting(_) => unreachable!("an impatient call waits"),
    }
}

pub(crate) fn admit_to<G: Guard>(guard: &G, host: &str, now: Duration) -> Option<G::Ticket> {
    match guard.admit(&Arrival::new(host, now).impatient()) {
        Admit::Admitted(ticket) => Some(ticket),
        _ => None,
    }
}

/// A call in the queue.
pub(crate) struct Waiting<'a, G: Guard> {
    guard: &'a G,
    ticket: Option<G::Ticket>,
    pub(crate) waker: Arc<Counting>,
    latest: Option<Duration>,
}

pub(crate) fn wait<G: Guard>(guard: &G, now: Duration) -> Waiting<'_, G> {
    wait_until(guard, now, None).unwrap()
}

pub(crate) fn wait_until<G: Guard>(
    guard: &G,
    now: Duration,
    latest: Option<Duration>,
) -> Result<Waiting<'_, G>, Refused> {
    let mut arrival = Arrival::new(HOST, now);
    arrival.latest = latest;
    match guard.admit(&arrival) {
        Admit::Waiting(ticket) => Ok(Waiting { guard, ticket: Some(ticket), waker: Arc::default(), latest }),
        Admit::Refused(refused) => Err(refused),
        Admit::Admitted(_) => unreachable!("admitted at once"),
    }
}

impl<G: Guard> Waiting<'_, G> {
    pub(crate) fn poll(&mut self, now: Duration) -> Resume {
        let waker = Waker::from(Arc::clone(&self.waker));
        let mut arrival = Arrival::new(HOST, now);
        arrival.latest = self.latest;
        let ticket = self.ticket.as_mut().unwrap();
        let resume = self.guard.resume(ticket, &arrival, &waker);
        if matches!(resume, Resume::Refused(_)) {
            self.ticket = None;
        }
        resume
    }

    pub(crate) fn admitted(mut self, now: Duration) -> G::Ticket {
        assert_eq!(self.poll(now), Resume::Admitted);
        self.ticket.take().unwrap()
    }

    /// Drops the call while it waits.
    pub(crate) fn cancel(mut self, now: Duration) {
        let ticket = self.ticket.take().unwrap();
        assert!(self.guard.end_ticket(ticket, &End::Unsent, now).is_none());
    }
}

pub(crate) fn waits_until(moment: Duration) -> Resume {
    Resume::Waiting { until: Some(moment) }
}

pub(crate) fn reason<T>(refused: Result<T, Refused>) -> Reason {
    refused.err().unwrap().reason()
}
