//! The faults: servers that die and return, connections that end, and tokens that expire.

use super::{Event, NETWORK, SECOND, Simulation};
use crate::connections::client::Outcome;
use crate::connections::scene::Strike;

/// The time of a renewal.
const RENEWAL: u64 = 20 * super::MILLISECOND;
/// The time for which a server of a rolling restart is gone.
const ROLLING: u64 = SECOND;

impl Simulation<'_> {
    pub(super) fn fault_begins(&mut self) {
        if self.world.scene.refuses_connections() {
            (0..self.world.scene.servers()[0]).for_each(|server| self.take_down(server));
        }
        if self.world.scene.strikes().is_some() {
            self.strike(0);
        }
    }

    pub(super) fn fault_ends(&mut self) {
        if self.world.scene.refuses_connections() {
            self.servers.iter_mut().for_each(|server| server.up = true);
        }
        (0..self.servers.len()).for_each(|server| self.work(server));
    }

    /// The recurring action of a fault.
    pub(super) fn strike(&mut self, number: u64) {
        let Some((strike, interval)) = self.world.scene.strikes().filter(|_| self.is_fault()) else { return };
        self.queue.after(interval, Event::Strike(number + 1));
        match strike {
            Strike::ResetOne => self.reset_one(),
            Strike::GoAway => self.end_all(|_| true, true),
            Strike::KillNext => {
                let server = usize::try_from(number).unwrap_or(0) % self.servers.len();
                self.kill(server, ROLLING);
            }
            Strike::ExpireToken => self.valid_token += 1,
        }
    }

    /// Resets a random connection.
    fn reset_one(&mut self) {
        let drawn = u128::from(reattempt::schedule::Random::next_u64(&mut self.random));
        let place = usize::try_from((drawn * self.connections.len() as u128) >> 64).unwrap_or(0);
        self.end_connection(place, false);
    }

    /// Ends the connections to some servers.
    pub(super) fn end_all(&mut self, of_server: impl Fn(usize) -> bool, goes_away: bool) {
        for place in 0..self.connections.len() {
            if of_server(self.connections[place].server) {
                self.end_connection(place, goes_away);
            }
        }
    }

    pub(super) fn end_connection(&mut self, place: usize, goes_away: bool) {
        if let Some(below) = self.connections[place].end(goes_away) {
            self.queue.after(NETWORK, Event::Ended { place, below, goes_away });
        }
    }

    /// Kills a server, which returns after this time.
    pub(super) fn kill(&mut self, server: usize, restart: u64) {
        self.take_down(server);
        let epoch = self.servers[server].epoch;
        self.queue.after(restart, Event::Returns { server, epoch });
    }

    fn take_down(&mut self, server: usize) {
        self.servers[server].die();
        self.end_all(|of| of == server, false);
    }

    pub(super) fn returns(&mut self, server: usize, epoch: u64) {
        let server = &mut self.servers[server];
        server.up |= server.epoch == epoch;
    }

    /// A server has rejected the token of an attempt. The client's hook renews it, unless it has a newer one.
    pub(super) fn stale(&mut self, attempt: u64) {
        let Some(state) = self.attempts.get(&attempt) else { return };
        let Some(open) = self.calls.get(&state.call) else { return };
        let (number, token) = (open.client, state.token);
        let client = &mut self.clients[number];
        if client.token.version == token && !client.token.renews {
            client.token.renews = true;
            self.queue.after(RENEWAL, Event::Renewed { client: number, version: self.valid_token });
        }
        self.end_attempt(attempt, Err(Outcome::stale(self.policy.is_former())));
    }

    pub(super) fn renewed(&mut self, client: usize, version: u64) {
        let token = &mut self.clients[client].token;
        (token.version, token.renews) = (version, false);
        std::mem::take(&mut token.held).into_iter().for_each(|call| self.send(call));
    }
}
