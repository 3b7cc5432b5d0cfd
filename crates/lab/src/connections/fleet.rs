//! The fleet of clients: their number, the calls that each makes, and its connections to a server.

use super::times::{LATENCY, SECOND};

/// Clients that are alike.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Fleet {
    pub(super) clients: u32,
    pub(super) calls: Calls,
    /// The connections of a client to each server.
    pub(super) connections: u32,
}

/// The calls of one client.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Calls {
    /// A number of tasks, each of which makes one call after another.
    InFlight(u32),
    /// Calls a second at random times, even while earlier ones are in flight.
    PerSecond(f64),
}

/// The largest fleets that a simulation finishes in minutes.
const MOST_CLIENTS: u32 = 100_000;
const MOST_CONNECTIONS: u32 = 64;
const MOST_PER_SECOND: f64 = 100_000.0;

const FORM: &str = "must be CLIENTSxCALLS[/CONNECTIONS] or CLIENTSxRATE/s[/CONNECTIONS], such as 1x64/4 or 1000x1/s";

impl Fleet {
    /// Returns the calls a second of all clients, if each takes the usual time.
    pub(super) fn per_second(&self) -> f64 {
        let each = match self.calls {
            Calls::InFlight(calls) => f64::from(calls) * SECOND as f64 / LATENCY as f64,
            Calls::PerSecond(rate) => rate,
        };
        f64::from(self.clients) * each
    }

    pub(super) fn title(&self) -> String {
        let connections = match self.connections {
            1 => String::new(),
            connections => format!(" on {connections}"),
        };
        match self.calls {
            Calls::InFlight(calls) => format!("{} × {calls}{connections}", self.clients),
            Calls::PerSecond(rate) => format!("{} × {rate}/s{connections}", self.clients),
        }
    }

    /// Parses a fleet on the command line.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let form = || FORM.to_owned();
        let (clients, calls) = text.split_once('x').ok_or_else(form)?;
        let clients = number(clients, MOST_CLIENTS).ok_or_else(form)?;
        let parts: Vec<_> = calls.split('/').collect();
        let (calls, rest) = match &parts[..] {
            [rate, "s", rest @ ..] => {
                let rate = rate.parse().ok().filter(|rate| (0.001..=MOST_PER_SECOND).contains(rate));
                (Calls::PerSecond(rate.ok_or_else(form)?), rest)
            }
            [calls, rest @ ..] => (Calls::InFlight(number(calls, 10_000).ok_or_else(form)?), rest),
            [] => return Err(form()),
        };
        let connections = match rest {
            [] => 1,
            [connections] => number(connections, MOST_CONNECTIONS).ok_or_else(form)?,
            _ => return Err(form()),
        };
        let fleet = Self { clients, calls, connections };
        match fleet.per_second() <= MOST_PER_SECOND {
            true => Ok(fleet),
            false => Err(format!("more than {MOST_PER_SECOND} calls a second")),
        }
    }
}

fn number(text: &str, most: u32) -> Option<u32> {
    text.parse().ok().filter(|number| (1..=most).contains(number))
}
