//! The simulation of a storm: clients, network and server on one event queue.
//!
//! Input: a scene, a policy, a seed. Output: each event, to an observer. Time advances in ticks of
//! a millisecond. A message takes at least one tick, so an event cannot affect another place within
//! its tick. Events of one tick are processed in the order of clients and calls.

mod confirming;
mod restart;

use std::time::Duration;

use http::StatusCode;
use reattempt::classify::verdict_of_status;
use reattempt::guard::contract::{Admit, End, Guard, Health};
use reattempt::guard::{self, Refused};
use reattempt::schedule::{CallRandom, Failure, FailureKind};
use reattempt::{StopReason, Verdict};
use reattempt_core::CallEnd;
use reattempt_core::event::sent_after_failure;

use super::client::{Arrivals, Client, DESTINATION, Retrying};
use super::fleet::{Fleet, StoreCounts, StoreEvent};
use super::policy::Policy;
use super::server::{Arrival, Server, ServerSettings};
use super::tick::{ticks, time};
use crate::events::EventQueue;
use crate::guards::Tickets;
use restart::new_budget;

/// The conditions that are the same for all policies. Times are in ticks.
#[derive(Debug, Clone)]
pub(super) struct Scene {
    pub(super) clients: u32,
    /// Calls a second of each client.
    pub(super) rate: f64,
    /// Duration of the load.
    pub(super) duration: u64,
    /// The end of the simulation: a call still in flight then is neither a success nor lost.
    pub(super) end: u64,
    /// The time that a client waits for an answer.
    pub(super) timeout: u64,
    /// The time that a message takes, one way; at least 1.
    pub(super) network: u64,
    pub(super) server: ServerSettings,
    /// The mean time between two losses of a client's connection, which fail all its attempts in
    /// flight.
    pub(super) drop_every: Option<u64>,
    /// The interval at which all clients restart: each has a new budget then. Its guards keep their state.
    pub(super) restart_every: Option<u64>,
    pub(super) seed: u64,
}

/// An observer of the simulation.
pub(super) trait Watch {
    /// A call begins.
    fn begun(&mut self, at: u64);
    /// An attempt is sent.
    fn sent(&mut self, at: u64);
    /// An attempt has ended for its client, or a guard has refused it.
    fn ended(&mut self, end: &Ended);
    /// The simulation has ended, with these counts of the store that clients share.
    fn stored(&mut self, counts: StoreCounts);
}

/// The end of an attempt. It has no failure if the attempt succeeded or a guard refused it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) at: u64,
    pub(super) client: u32,
    pub(super) call: u32,
    /// The number; an attempt that replaces one that was refused has the number of that.
    pub(super) attempt: u32,
    /// The time at which the call began.
    pub(super) started: u64,
    /// The failure, if the attempt was sent and failed.
    pub(super) failure: Option<Failure>,
    /// The delay before the next attempt, or the reason why there is none.
    pub(super) then: Result<Duration, StopReason>,
}

/// An attempt in flight, or an event of it.
#[derive(Debug, Clone, Copy)]
struct Event {
    /// The call's place in the list of calls in flight.
    slot: u32,
    client: u32,
    call: u32,
    /// The number, in which attempts that were refused count too.
    attempt: u16,
    kind: Kind,
}

/// The flag of the random streams of lost connections.
const LOSSES: u64 = 1 << 40;

/// The kinds of events, in their order within a tick: the server's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    FaultOver,
    /// An event of a message to the fleet's store; its number is the slot.
    Store(StoreEvent),
    Done,
    Arrives,
    /// An answer, which is processed before a timeout of the same tick.
    Answer,
    Refusal,
    Timeout,
    RetryDue,
    CallDue,
    /// A client's connection is lost.
    ConnectionLost,
}

impl Event {
    fn order(&self) -> (Kind, u32, u32, Kind, u16) {
        // Events at clients are ordered by their calls, not by their kinds.
        let place = self.kind.min(Kind::Answer);
        (place, self.client, self.call, self.kind, self.attempt)
    }
}

/// A call in flight.
struct Call {
    client: u32,
    number: u32,
    /// The number of the attempt in flight, or of the next one during a delay; 0 for a free place.
    attempt: u16,
    /// `true` if the attempt has not been sent yet.
    waits: bool,
    started: u64,
    /// The time of sending, for evidence.
    sent: Duration,
    retrying: Option<Box<Retrying>>,
    /// The attempt that has ended, while its retry is not confirmed, and the tick at which that is due.
    confirming: Option<Box<(Ended, u64)>>,
    /// The tick of sending, and the tickets of the guards, for an attempt that guards admitted.
    admitted: Option<Box<(u64, Tickets)>>,
}

/// A storm under one policy.
pub(super) struct Simulation<'a, W> {
    scene: &'a Scene,
    policy: &'a Policy,
    watch: W,
    queue: EventQueue<Event>,
    server: Server<Event>,
    clients: Vec<Client>,
    calls: Vec<Call>,
    free: Vec<u32>,
    /// The store of the budget that clients share, if the policy has one.
    fleet: Option<Fleet>,
}

impl<'a, W: Watch> Simulation<'a, W> {
    pub(super) fn new(scene: &'a Scene, policy: &'a Policy, watch: W) -> Self {
        let (mut queue, mut clients) = (EventQueue::new(), Vec::new());
        let no_client = Event { slot: 0, client: 0, call: 0, attempt: 0, kind: Kind::FaultOver };
        queue.after(scene.server.faulty.end, no_client);
        let fleet = policy.store().map(Fleet::new);
        for number in 0..scene.clients {
            let arrivals = Arrivals::new(scene.seed, number.into(), scene.rate);
            let mut client = Client::new(policy, arrivals);
            client.budget = new_budget(policy, fleet.as_ref(), client.seed);
            let first = client.next_call();
            if first < scene.duration {
                // After the events of calls in flight, as where one task polls them all.
                let due = Event { client: number, call: u32::MAX, ..no_client };
                queue.after(first, Event { kind: Kind::CallDue, ..due });
            }
            if let Some(mean) = scene.drop_every {
                client.losses = Some(Arrivals::new(scene.seed, u64::from(number) | LOSSES, 1000.0 / mean as f64));
                let first = client.next_loss();
                let loss = Event { client: number, call: u32::MAX, ..no_client };
                queue.after(first, Event { kind: Kind::ConnectionLost, ..loss });
            }
            clients.push(client);
        }
        let server = Server::new(scene.server.clone(), server_random(scene));
        let (calls, free) = (Vec::new(), Vec::new());
        Self { scene, policy, watch, queue, server, clients, calls, free, fleet }
    }

    /// Runs to the end of the scene, or until every call has ended.
    pub(super) fn run(mut self) -> W {
        let mut together = Vec::new();
        while let Some(event) = self.queue.next().filter(|_| self.queue.now() < self.scene.end) {
            together.push(event);
            together.extend(std::iter::from_fn(|| self.queue.next_now()));
            together.sort_unstable_by_key(Event::order);
            together.drain(..).for_each(|event| self.happens(event));
        }
        if let Some(fleet) = &self.fleet {
            self.watch.stored(fleet.counts());
        }
        self.watch
    }

    fn happens(&mut self, event: Event) {
        let now = self.queue.now();
        if let Some(fleet) = &self.fleet {
            fleet.set_now(now);
        }
        match event.kind {
            Kind::FaultOver => self.work(),
            Kind::Store(of_store) => self.store_event(event, of_store),
            Kind::Done => {
                self.server.done();
                self.queue.after(self.scene.network, Event { kind: Kind::Answer, ..event });
                self.work();
            }
            Kind::Arrives => match self.server.arrive(now, event) {
                Arrival::Begun(job, work) => self.begun(job, work),
                Arrival::Waits | Arrival::Lost => {}
                Arrival::Refused(job) => {
                    self.queue.after(self.scene.network, Event { kind: Kind::Refusal, ..job });
                }
            },
            Kind::CallDue => self.call(event),
            Kind::ConnectionLost => self.lose_connection(event),
            Kind::Answer | Kind::Refusal | Kind::Timeout | Kind::RetryDue => {
                // The result of an abandoned attempt is ignored.
                let slot = event.slot as usize;
                let known = self.calls.get(slot).filter(|call| {
                    (call.client, call.number, call.attempt) == (event.client, event.call, event.attempt)
                });
                if known.is_some() {
                    self.attempt_event(slot, event);
                }
            }
        }
    }

    /// Lets free workers begin the waiting requests.
    fn work(&mut self) {
        while let Some((job, work)) = self.server.begin_next(self.queue.now()) {
            self.begun(job, work);
        }
    }

    fn begun(&mut self, job: Event, work: u64) {
        self.queue.after(work, Event { kind: Kind::Done, ..job });
    }

    /// Fails all attempts of a client that are in flight.
    fn lose_connection(&mut self, event: Event) {
        for slot in 0..self.calls.len() {
            let Call { client, number: call, attempt, waits, .. } = self.calls[slot];
            if client == event.client && attempt > 0 && !waits {
                let slot_number = u32::try_from(slot).unwrap_or(u32::MAX);
                self.attempt_event(slot, Event { slot: slot_number, call, attempt, ..event });
            }
        }
        let now = self.queue.now();
        let Some(client) = self.clients.get_mut(event.client as usize) else { return };
        let next = client.next_loss();
        if next < self.scene.duration {
            self.queue.after(next.saturating_sub(now), event);
        }
    }

    /// Starts a call of a client.
    fn call(&mut self, due: Event) {
        let now = self.queue.now();
        let Some(client) = self.clients.get_mut(due.client as usize) else { return };
        let number = client.calls;
        client.calls += 1;
        let next = client.next_call();
        if next < self.scene.duration {
            self.queue.after(next - now, due);
        }
        let call = Call {
            client: due.client,
            number,
            attempt: 1,
            waits: false,
            started: now,
            sent: time(now),
            retrying: None,
            confirming: None,
            admitted: None,
        };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.calls[slot as usize] = call;
                slot
            }
            None => {
                self.calls.push(call);
                u32::try_from(self.calls.len() - 1).unwrap_or(u32::MAX)
            }
        };
        self.watch.begun(now);
        self.send(Event { slot, call: number, attempt: 1, ..due });
    }

    /// Sends an attempt, if the client's guards admit it.
    fn send(&mut self, attempt: Event) {
        let (now, slot) = (self.queue.now(), attempt.slot as usize);
        let guards = &self.clients[attempt.client as usize].guards;
        if !guards.is_empty() {
            match guards.admit(&guard::contract::Arrival::new(DESTINATION, time(now))) {
                Admit::Admitted(tickets) | Admit::Waiting(tickets) => {
                    self.calls[slot].admitted = Some(Box::new((now, tickets)));
                }
                Admit::Refused(refused) => return self.end_attempt(slot, attempt, Err(refused)),
            }
        }
        self.watch.sent(now);
        self.queue.after(self.scene.network, Event { kind: Kind::Arrives, ..attempt });
        let patience = self.policy.timeout.unwrap_or(self.scene.timeout);
        self.queue.after(patience, Event { kind: Kind::Timeout, ..attempt });
    }

    fn send_retry(&mut self, slot: usize, attempt: Event) {
        self.calls[slot].waits = false;
        self.calls[slot].sent = sent_after_failure(time(self.queue.now()));
        if let Some(retrying) = &mut self.calls[slot].retrying {
            retrying.on_send();
        }
        self.send(attempt);
    }

    /// Handles an answer, a timeout or a lost connection for a call in flight.
    fn attempt_event(&mut self, slot: usize, event: Event) {
        let (verdict, health) = match event.kind {
            Kind::RetryDue => return self.send_retry(slot, event),
            Kind::Refusal => (verdict_of_status(StatusCode::SERVICE_UNAVAILABLE), Health::Unavailable),
            Kind::Timeout => (Verdict::Transient(Failure::new(FailureKind::Timeout)), Health::Unavailable),
            Kind::ConnectionLost => (Verdict::Transient(Failure::new(FailureKind::Network)), Health::Lost),
            _ => (Verdict::Success, Health::Served),
        };
        if let Some((sent, tickets)) = self.calls[slot].admitted.take().map(|admitted| *admitted) {
            let now = self.queue.now();
            let end = End::judged(health, time(now - sent));
            self.clients[event.client as usize].guards.end_ticket(tickets, &end, time(now));
        }
        self.end_attempt(slot, event, Ok(verdict));
    }

    /// Decides what follows an attempt that has ended, or that a guard refused.
    fn end_attempt(&mut self, slot: usize, event: Event, ending: Result<Verdict, Refused>) {
        self.restart(event.client);
        let now = self.queue.now();
        let (call, client) = (&mut self.calls[slot], &self.clients[event.client as usize]);
        let started = call.started;
        let failure = ending.ok().and_then(|verdict| verdict.failure().copied());
        let attempt = call.retrying.as_ref().map_or(1, |retrying| retrying.attempt());
        let then = if ending == Ok(Verdict::Success) {
            let account = call.retrying.as_mut().map(|retrying| retrying.take_account());
            account.unwrap_or_default().settle(CallEnd::Succeeded, DESTINATION, &client.budget);
            Err(StopReason::Succeeded)
        } else {
            let retrying =
                call.retrying.get_or_insert_with(|| Box::new(Retrying::new(self.policy, client.seed, event.call)));
            retrying.failed(self.policy, &client.budget, ending, [call.started, now], call.sent)
        };
        let (at, call, client) = (now, event.call, event.client);
        let ended = Ended { at, client, call, attempt, started, failure, then };
        // The questions and reports of the budget, which the decision has made.
        self.post((event.slot, client, call, event.attempt.saturating_add(1)));
        if let Ok(after) = then
            && self.fleet.is_some()
        {
            let due = now + ticks(after);
            self.calls[slot].confirming = Some(Box::new((ended, due)));
            self.calls[slot].waits = true;
            self.calls[slot].attempt = event.attempt.saturating_add(1);
            self.confirm(slot, event);
        } else {
            self.follow(slot, event, &ended);
        }
    }

    /// Sends the next attempt after this delay, rounded up to the timer's resolution.
    fn retry(&mut self, slot: usize, event: Event, after: Duration) {
        let attempt = event.attempt.saturating_add(1);
        self.calls[slot].attempt = attempt;
        self.calls[slot].waits = true;
        let due = Event { attempt, kind: Kind::RetryDue, ..event };
        match ticks(after) {
            0 => self.send_retry(slot, due),
            delay => self.queue.after(delay, due),
        }
    }
}

/// Returns the server's own random streams, for random failures and for bursts.
pub(super) fn server_random(scene: &Scene) -> [CallRandom; 2] {
    [1, 2].map(|stream| CallRandom::of_call(scene.seed, u64::from(u32::MAX) + stream))
}
