//! The way of an attempt: through guards and a pick to a connection, to a server, and back to its call.

use reattempt::guard::contract::{Admit, Arrival, End, Guard, Health};

use super::{Attempt, Event, NETWORK, Simulation};
use crate::connections::client::{Outcome, SERVICE_NAME};
use crate::connections::connection::State;
use crate::connections::scene::Scene;
use crate::events::nanoseconds;

/// A balancer resets all connections whenever this much work waits.
const OVERLOADED: u64 = 300 * super::MILLISECOND;

impl Simulation<'_> {
    /// Sends an attempt of a call: the first one, or a retry that is due.
    pub(super) fn send(&mut self, call: u64) {
        let (now, at) = (self.queue.now(), self.now());
        let Some(open) = self.calls.get_mut(&call) else { return };
        let number = open.client;
        let client = &mut self.clients[number];
        if client.token.renews && self.world.scene.holds_calls() {
            client.token.held.push_back(call);
            return;
        }
        let guards = match client.guards.is_empty() {
            true => None,
            false => match client.guards.admit(&Arrival::new(SERVICE_NAME, at)) {
                Admit::Admitted(tickets) | Admit::Waiting(tickets) => Some(tickets),
                Admit::Refused(refused) => return self.fail(call, Outcome::refused(refused), false),
            },
        };
        let pick = client.set.as_ref().and_then(|set| set.pick(&open.trail, at, &mut client.random));
        let (server, elsewhere) = pick.as_ref().map_or((0, false), |pick| (*pick.ticket.service(), pick.elsewhere));
        let endpoint = pick.map(|pick| pick.ticket);
        if let Some(ticket) = &endpoint {
            open.trail.push(ticket.id());
        }
        let connections = self.world.fleet.connections as usize;
        let place = (number * self.servers.len() + server) * connections + client.turns % connections;
        client.turns += 1;
        let token = client.token.version;
        let attempt = self.sent;
        self.sent += 1;
        let state = Attempt { call, place, number: 0, sent: now, arrived: false, token, elsewhere, endpoint, guards };
        self.attempts.insert(attempt, state);
        self.queue.after(self.patience(), Event::Timeout(attempt));
        match &mut self.connections[place].state {
            State::Open(_) => self.dispatch(attempt),
            State::Opening(waiting) => waiting.push(attempt),
            state @ State::Closed => {
                *state = State::Opening(vec![attempt]);
                self.queue.after(NETWORK, Event::Opens(place));
            }
        }
    }

    /// Sends an attempt on its connection, which is open.
    fn dispatch(&mut self, attempt: u64) {
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        let connection = &mut self.connections[state.place];
        if let State::Open(number) = connection.state {
            state.number = number;
            connection.attempts.insert(attempt);
            self.counts.sent(self.queue.now());
            self.queue.after(NETWORK, Event::Arrives(attempt));
        }
    }

    /// The server accepts a connection or refuses it.
    pub(super) fn opens(&mut self, place: usize) {
        let connection = &mut self.connections[place];
        let event = match self.servers[connection.server].up {
            true => Event::Opened { place, number: connection.accept() },
            false => Event::NotOpened(place),
        };
        self.queue.after(NETWORK, event);
    }

    pub(super) fn opened(&mut self, place: usize, number: u64) {
        let state = std::mem::replace(&mut self.connections[place].state, State::Open(number));
        if let State::Opening(waiting) = state {
            waiting.into_iter().for_each(|attempt| self.dispatch(attempt));
        }
    }

    /// A refused connection fails the attempt that opened it, and those that waited for it.
    pub(super) fn not_opened(&mut self, place: usize) {
        let state = std::mem::replace(&mut self.connections[place].state, State::Closed);
        let State::Opening(waiting) = state else { return };
        self.counts.sent(self.queue.now());
        for (number, attempt) in waiting.into_iter().enumerate() {
            let outcome = if number == 0 { Outcome::not_connected() } else { Outcome::no_connection() };
            self.end_attempt(attempt, Err(outcome));
        }
    }

    /// A request arrives at its server, unless the server has ended its connection.
    pub(super) fn arrives(&mut self, attempt: u64) {
        let fault = self.is_fault();
        let Some(state) = self.attempts.get_mut(&attempt) else { return };
        let (connection, scene) = (&self.connections[state.place], self.world.scene);
        if !connection.processes(state.number) {
            return;
        }
        state.arrived = true;
        let (place, server) = (state.place, connection.server);
        let first_tier = server < scene.servers()[0];
        if fault && first_tier && scene.hangs_up() {
            self.end_connection(place, false);
        } else if fault && scene == Scene::RefusedStreams {
            self.queue.after(NETWORK, Event::RefusedStream(attempt));
        } else if state.token < self.valid_token {
            self.queue.after(NETWORK, Event::Stale(attempt));
        } else {
            self.servers[server].queue(attempt);
            self.work(server);
            if scene == Scene::Balancer && self.servers[server].backlog() > OVERLOADED {
                self.servers[server].drop_waiting();
                self.end_all(|_| true, false);
            }
        }
    }

    /// Lets free workers begin the requests that wait.
    pub(super) fn work(&mut self, server: usize) {
        if self.is_fault() && self.world.scene == Scene::Balancer {
            return;
        }
        let epoch = self.servers[server].epoch;
        while let Some((attempt, time)) = self.servers[server].begin_next() {
            self.queue.after(time, Event::Done { server, epoch, attempt });
        }
    }

    pub(super) fn done(&mut self, server: usize, epoch: u64, attempt: u64) {
        if self.servers[server].epoch != epoch {
            return;
        }
        self.servers[server].done();
        let state = self.attempts.get(&attempt);
        if state.is_some_and(|state| self.connections[state.place].answers(state.number)) {
            self.queue.after(NETWORK, Event::Answer(attempt));
        }
        let most = self.world.scene.dies_after().filter(|_| self.is_fault());
        match most {
            Some(most) if self.servers[server].responses >= most => self.kill(server, self.world.restart),
            _ => self.work(server),
        }
    }

    pub(super) fn answer(&mut self, attempt: u64) {
        self.end_attempt(attempt, Ok(()));
    }

    pub(super) fn time_out(&mut self, attempt: u64) {
        self.end_attempt(attempt, Err(Outcome::timeout()));
    }

    pub(super) fn refused_stream(&mut self, attempt: u64) {
        self.end_attempt(attempt, Err(Outcome::refused_stream()));
    }

    /// The client sees that connections have ended, which fails the attempts on them. After GOAWAY, the attempts that
    /// have arrived at the server go on.
    pub(super) fn ended(&mut self, place: usize, below: u64, goes_away: bool) {
        self.connections[place].close(below);
        let attempts: Vec<_> = self.connections[place].attempts.iter().copied().collect();
        for attempt in attempts {
            let state = self.attempts.get(&attempt);
            if state.is_some_and(|state| state.number < below && !(goes_away && state.arrived)) {
                let outcome = if goes_away { Outcome::refused_stream() } else { Outcome::lost() };
                self.end_attempt(attempt, Err(outcome));
            }
        }
    }

    /// Ends an attempt, unless the client has given it up, and decides what follows.
    pub(super) fn end_attempt(&mut self, attempt: u64, outcome: Result<(), Outcome>) {
        let Some(state) = self.attempts.remove(&attempt) else { return };
        let (now, former) = (self.now(), self.policy.is_former());
        self.connections[state.place].attempts.remove(&attempt);
        let Some(open) = self.calls.get(&state.call) else { return };
        let client = &mut self.clients[open.client];
        let health = outcome.as_ref().map_or_else(|outcome| outcome.health(former), |()| Health::Served);
        let end = End::judged(health, now.saturating_sub(std::time::Duration::from_nanos(state.sent)));
        if let Some(tickets) = state.guards {
            client.guards.end_ticket(tickets, &end, now);
        }
        if let (Some(set), Some(ticket)) = (&client.set, state.endpoint) {
            drop(set.end_ticket(ticket, &end, now, &mut client.random));
        }
        match outcome {
            Ok(()) => self.succeed(state.call),
            Err(outcome) => self.fail(state.call, outcome, state.elsewhere),
        }
    }

    fn succeed(&mut self, call: u64) {
        let Some(open) = self.calls.remove(&call) else { return };
        let (client, started) = (open.client, open.started);
        open.succeed(&self.clients[client]);
        self.counts.succeeded(started);
        self.next_of_task(client, started);
    }

    fn fail(&mut self, call: u64, outcome: Outcome, elsewhere: bool) {
        let now = self.now();
        let Some(open) = self.calls.get_mut(&call) else { return };
        let (client, started) = (open.client, open.started);
        match open.failed(self.policy, &self.clients[client], (outcome, elsewhere), now) {
            Ok(after) => self.queue.after(nanoseconds(after), Event::Retry(call)),
            Err(_) => {
                self.calls.remove(&call);
                self.next_of_task(client, started);
            }
        }
    }
}
