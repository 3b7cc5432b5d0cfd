//! A connection of a client, which carries many requests at a time. It is opened by the first request that needs it.

use std::collections::BTreeSet;

/// A place for a connection. After a loss the next request opens another one in its place, with the next number.
pub(super) struct Connection {
    pub(super) server: usize,
    pub(super) state: State,
    /// The attempts on it, by number, including those on former connections that still drain.
    pub(super) attempts: BTreeSet<u64>,
    /// The number of connections that the server has accepted here.
    accepted: u64,
    /// The server processes requests of connections from this number on, and responds to those from the other on.
    processed_from: u64,
    answered_from: u64,
}

/// The state at the client's end.
pub(super) enum State {
    Closed,
    /// The attempts wait for it. The first of them opens it.
    Opening(Vec<u64>),
    /// It has this number.
    Open(u64),
}

impl Connection {
    pub(super) fn new(server: usize) -> Self {
        let (state, attempts) = (State::Closed, BTreeSet::new());
        Self { server, state, attempts, accepted: 0, processed_from: 1, answered_from: 1 }
    }

    /// Accepts a connection at the server's end, and returns its number.
    pub(super) fn accept(&mut self) -> u64 {
        self.accepted += 1;
        self.accepted
    }

    pub(super) fn processes(&self, number: u64) -> bool {
        number >= self.processed_from
    }

    pub(super) fn answers(&self, number: u64) -> bool {
        number >= self.answered_from
    }

    /// Ends the connection at the server's end: at once, or with GOAWAY after the requests that have arrived. Returns
    /// the number of the next connection, unless none was left to end.
    pub(super) fn end(&mut self, goes_away: bool) -> Option<u64> {
        let next = self.accepted + 1;
        let known = if goes_away { self.processed_from } else { self.answered_from };
        if known == next {
            return None;
        }
        self.processed_from = next;
        if !goes_away {
            self.answered_from = next;
        }
        Some(next)
    }

    /// Closes the client's end, if the connection has a lower number than this.
    pub(super) fn close(&mut self, below: u64) {
        if matches!(self.state, State::Open(number) if number < below) {
            self.state = State::Closed;
        }
    }
}
