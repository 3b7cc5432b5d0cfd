//! Clients, connections and servers of one scene on one event queue, under one policy.
//!
//! Input: a world (scene, fleet, times, seed) and a policy. Output: the counts. A message takes 5 ms one way. What a
//! server does to a connection is seen by the client 5 ms later, so requests that it sends meanwhile share its fate.

mod faults;
mod traffic;

use std::collections::HashMap;
use std::time::Duration;

use reattempt::schedule::{CallRandom, Random};
use reattempt_control::EndpointTicket;

use super::client::{Client, OpenCall};
use super::connection::Connection;
use super::counts::Counts;
use super::fleet::{Calls, Fleet};
use super::scene::Scene;
use super::server::Server;
use super::times::{LATENCY, MILLISECOND, NETWORK, SECOND, SERVICE, Times};
use crate::chance::gap;
use crate::events::{EventQueue, nanoseconds};
use crate::guards::Tickets;
use crate::storm::Policy;

/// The client gives an attempt up after this time, unless the policy sets another.
const TIMEOUT: u64 = SECOND;

/// The conditions that all policies share.
#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) scene: Scene,
    pub(super) fleet: Fleet,
    pub(super) times: Times,
    /// The time from a server's death to its return.
    pub(super) restart: u64,
    pub(super) seed: u64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    /// A client makes a call; with its task if that makes one after another.
    Call {
        client: usize,
    },
    Retry(u64),
    Timeout(u64),
    /// A client's request for a connection has arrived at the server.
    Opens(usize),
    Opened {
        place: usize,
        number: u64,
    },
    NotOpened(usize),
    Arrives(u64),
    /// A worker of the process with this epoch has finished.
    Done {
        server: usize,
        epoch: u64,
        attempt: u64,
    },
    Answer(u64),
    RefusedStream(u64),
    Stale(u64),
    /// The client sees the end of connections with a lower number.
    Ended {
        place: usize,
        below: u64,
        goes_away: bool,
    },
    FaultBegins,
    Strike(u64),
    FaultEnds,
    Returns {
        server: usize,
        epoch: u64,
    },
    Renewed {
        client: usize,
        version: u64,
    },
}

/// An attempt in flight, or one that waits for its connection.
struct Attempt {
    call: u64,
    place: usize,
    /// The number of its connection, once it has been sent.
    number: u64,
    sent: u64,
    /// `true` once the server has taken it on.
    arrived: bool,
    token: u64,
    elsewhere: bool,
    endpoint: Option<EndpointTicket<usize>>,
    guards: Option<Tickets>,
}

pub(super) struct Simulation<'a> {
    world: &'a World,
    policy: &'a Policy,
    queue: EventQueue<Event>,
    clients: Vec<Client>,
    servers: Vec<Server>,
    /// The connections, by client, server and number.
    connections: Vec<Connection>,
    calls: HashMap<u64, OpenCall>,
    attempts: HashMap<u64, Attempt>,
    /// The numbers of calls and attempts so far.
    begun: u64,
    sent: u64,
    /// The version of the token that servers accept.
    valid_token: u64,
    /// The random numbers of faults.
    random: CallRandom,
    counts: Counts,
}

/// Runs a scene under a policy. `on_second` is called at each second of the load.
pub(super) fn run(world: &World, policy: &Policy, mut on_second: impl FnMut()) -> Counts {
    let mut simulation = Simulation::new(world, policy);
    let mut seconds = 0;
    while let Some(event) = simulation.queue.next() {
        while seconds < simulation.queue.now().min(world.times.end) / SECOND {
            seconds += 1;
            on_second();
        }
        simulation.happens(event);
    }
    debug_assert!(simulation.calls.is_empty(), "each call ends");
    simulation.counts
}

impl<'a> Simulation<'a> {
    fn new(world: &'a World, policy: &'a Policy) -> Self {
        let World { scene, fleet, times, seed, .. } = world;
        let servers = scene.servers().iter().sum::<usize>();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a fleet's load is limited")]
        let workers = (fleet.per_second() * SERVICE as f64 / SECOND as f64 / scene.load() / scene.carrying() as f64)
            .ceil() as usize;
        let mut random = CallRandom::of_call(*seed, u64::MAX);
        let mut queue = EventQueue::new();
        queue.after(times.fault.start, Event::FaultBegins);
        queue.after(times.fault.end, Event::FaultEnds);
        let servers: Vec<_> =
            (0..servers).map(|_| Server::new(workers, CallRandom::of_call(random.next_u64(), 0))).collect();
        let number = 0..u64::from(fleet.clients);
        let mut clients: Vec<_> = number.map(|client| Client::new(policy, *scene, (*seed, client))).collect();
        let mut connections = Vec::new();
        for (number, client) in clients.iter_mut().enumerate() {
            for server in 0..servers.len() {
                connections.extend((0..fleet.connections).map(|_| Connection::new(server)));
            }
            match fleet.calls {
                // The tasks begin within a call's time, so that they are not in step.
                Calls::InFlight(calls) => (0..calls).for_each(|_| {
                    queue.after(client.arrivals.next_u64() % LATENCY, Event::Call { client: number });
                }),
                Calls::PerSecond(rate) => queue.after(gap(rate, &mut client.arrivals), Event::Call { client: number }),
            }
        }
        Self {
            world,
            policy,
            queue,
            clients,
            servers,
            connections,
            calls: HashMap::new(),
            attempts: HashMap::new(),
            begun: 0,
            sent: 0,
            valid_token: 0,
            random,
            counts: Counts::default(),
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Call { client } => self.call(client),
            Event::Retry(call) => self.retry(call),
            Event::Timeout(attempt) => self.time_out(attempt),
            Event::Opens(place) => self.opens(place),
            Event::Opened { place, number } => self.opened(place, number),
            Event::NotOpened(place) => self.not_opened(place),
            Event::Arrives(attempt) => self.arrives(attempt),
            Event::Done { server, epoch, attempt } => self.done(server, epoch, attempt),
            Event::Answer(attempt) => self.answer(attempt),
            Event::RefusedStream(attempt) => self.refused_stream(attempt),
            Event::Stale(attempt) => self.stale(attempt),
            Event::Ended { place, below, goes_away } => self.ended(place, below, goes_away),
            Event::FaultBegins => self.fault_begins(),
            Event::Strike(number) => self.strike(number),
            Event::FaultEnds => self.fault_ends(),
            Event::Returns { server, epoch } => self.returns(server, epoch),
            Event::Renewed { client, version } => self.renewed(client, version),
        }
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.queue.now())
    }

    fn is_fault(&self) -> bool {
        self.world.times.fault.contains(&self.queue.now())
    }

    /// Begins a call of a client, and plans the next one of a client whose calls come at random times.
    fn call(&mut self, number: usize) {
        let now = self.queue.now();
        if now >= self.world.times.end {
            return;
        }
        let client = &mut self.clients[number];
        if let Calls::PerSecond(rate) = self.world.fleet.calls {
            self.queue.after(gap(rate, &mut client.arrivals), Event::Call { client: number });
        }
        let call = self.begun;
        self.begun += 1;
        let random = CallRandom::of_call(client.arrivals.next_u64(), 0);
        self.calls.insert(call, OpenCall::new(number, now, random));
        self.counts.begun(now);
        self.send(call);
    }

    /// Lets a task go on to its next call. After a call that was shorter than usual it pauses, so that failures alone
    /// do not raise the load.
    fn next_of_task(&mut self, client: usize, started: u64) {
        if let Calls::InFlight(_) = self.world.fleet.calls {
            let pause = (started + LATENCY).saturating_sub(self.queue.now());
            self.queue.after(pause, Event::Call { client });
        }
    }

    fn retry(&mut self, call: u64) {
        let now = self.now();
        if let Some(open) = self.calls.get_mut(&call) {
            open.on_send(now);
            self.send(call);
        }
    }

    fn patience(&self) -> u64 {
        self.policy.timeout.map_or(TIMEOUT, |ticks| nanoseconds(Duration::from_millis(ticks)))
    }
}
