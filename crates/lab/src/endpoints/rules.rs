//! The rules that choose a server: the library's set of endpoints, and rivals as their projects describe them.
//!
//! The rivals are plain: lists and floating point. None of them knows which servers a call has tried.

use std::time::Duration;

use clap::ValueEnum;
use reattempt::guard::contract::{End, Health};
use reattempt::schedule::{CallRandom, Random};
use reattempt_control::{EndpointSet, EndpointTicket, Trail};

/// A rule on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Which {
    /// `EndpointSet`, with retries that go elsewhere
    Ours,
    /// tower's balancer: the better of two, by peak latency and calls in flight
    TowerP2c,
    /// Each server in turn
    RoundRobin,
    /// Envoy's least request of two, with outlier detection up to half of the servers
    Envoy,
}

impl Which {
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::Ours => "endpoints",
            Self::TowerP2c => "tower P2C",
            Self::RoundRobin => "round robin",
            Self::Envoy => "Envoy's rule",
        }
    }

    /// Creates the rule for so many servers, of which those from `second` on are the second tier.
    pub(super) fn rule(self, servers: usize, second: usize) -> Rule {
        let of = vec![Seen::default(); servers];
        match self {
            Self::Ours => {
                let set = EndpointSet::new();
                let names = (0..servers).map(|server| (usize::from(server >= second), format!("{server:03}")));
                set.update(names, |name| name.parse().unwrap_or(0), Duration::ZERO);
                Rule::Ours(set)
            }
            Self::TowerP2c => Rule::TowerP2c(of),
            Self::RoundRobin => Rule::RoundRobin { servers, last: 0 },
            Self::Envoy => Rule::Envoy(Envoy { servers: of, swept: Duration::ZERO }),
        }
    }
}

/// The rule of one client.
pub(super) enum Rule {
    Ours(EndpointSet<usize>),
    TowerP2c(Vec<Seen>),
    RoundRobin { servers: usize, last: usize },
    Envoy(Envoy),
}

/// The server for an attempt.
pub(super) struct Choice {
    pub(super) server: usize,
    pub(super) elsewhere: bool,
    ticket: Option<EndpointTicket<usize>>,
}

/// The state of a server, as rivals keep it.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen {
    in_flight: u32,
    /// The latency estimate in seconds, and the time of its last change.
    latency: Option<f64>,
    changed: Duration,
    in_a_row: u32,
    ejected: Option<Duration>,
    ejections: u32,
}

/// The latency that tower assumes of a new server, and its time of decay, in seconds.
const TOWER_DEFAULT: f64 = 0.03;
const TOWER_DECAY: f64 = 10.0;

impl Seen {
    /// Updates tower's estimate: a peak counts at once, and less moves it slowly.
    fn update(&mut self, sample: f64, now: Duration) -> f64 {
        let old = self.latency.unwrap_or(TOWER_DEFAULT);
        let new = if sample > old {
            sample
        } else {
            let left = (-now.saturating_sub(self.changed).as_secs_f64() / TOWER_DECAY).exp();
            old * left + sample * (1.0 - left)
        };
        (self.latency, self.changed) = (Some(new), now);
        new
    }

    /// Returns tower's load. The estimate decays as it is read.
    fn load(&mut self, now: Duration) -> f64 {
        self.update(0.0, now) * f64::from(self.in_flight + 1)
    }
}

/// Envoy's servers, with its defaults but for the share that may be ejected: half, where its default is a tenth.
pub(super) struct Envoy {
    servers: Vec<Seen>,
    swept: Duration,
}

const ENVOY_IN_A_ROW: u32 = 5;
const ENVOY_INTERVAL: Duration = Duration::from_secs(10);
const ENVOY_BASE: Duration = Duration::from_secs(30);
const ENVOY_LONGEST: Duration = Duration::from_secs(300);
const ENVOY_SHARE: f64 = 0.5;
/// If fewer than this share of the servers is in service, all of them are used.
const ENVOY_PANIC: f64 = 0.5;

impl Envoy {
    /// Every interval, ejections that are over end, and one is forgiven to each server in service.
    fn sweep(&mut self, now: Duration) {
        if now < self.swept + ENVOY_INTERVAL {
            return;
        }
        self.swept = now;
        for server in &mut self.servers {
            match server.ejected {
                Some(at) if now >= at + (ENVOY_BASE * server.ejections).min(ENVOY_LONGEST) => {
                    (server.ejected, server.in_a_row) = (None, 0);
                }
                Some(_) => {}
                None => server.ejections = server.ejections.saturating_sub(1),
            }
        }
    }

    fn ejected_share(&self) -> f64 {
        let ejected = self.servers.iter().filter(|server| server.ejected.is_some()).count();
        ejected as f64 / self.servers.len() as f64
    }

    fn pick(&mut self, now: Duration, random: &mut CallRandom) -> usize {
        self.sweep(now);
        let panics = 1.0 - self.ejected_share() < ENVOY_PANIC;
        let usable: Vec<_> =
            (0..self.servers.len()).filter(|server| panics || self.servers[*server].ejected.is_none()).collect();
        let [one, other] = [0, 1].map(|_| usable[below(usable.len(), random)]);
        if self.servers[other].in_flight < self.servers[one].in_flight { other } else { one }
    }

    fn end_attempt(&mut self, server: usize, failed: bool, now: Duration) {
        self.sweep(now);
        let share = self.ejected_share();
        let server = &mut self.servers[server];
        server.in_flight -= 1;
        server.in_a_row = if failed { server.in_a_row + 1 } else { 0 };
        // At least one may be ejected, whatever the share.
        if server.in_a_row >= ENVOY_IN_A_ROW && server.ejected.is_none() && share < ENVOY_SHARE {
            (server.ejected, server.ejections) = (Some(now), server.ejections + 1);
        }
    }
}

/// Draws a number below `bound`.
fn below(bound: usize, random: &mut CallRandom) -> usize {
    let drawn = (u128::from(random.next_u64()) * bound as u128) >> 64;
    usize::try_from(drawn).unwrap_or(0)
}

impl Rule {
    pub(super) fn pick(&mut self, trail: &mut Trail, now: Duration, random: &mut CallRandom) -> Choice {
        let server = match self {
            Self::Ours(set) => {
                // The set is never empty.
                let Some(pick) = set.pick(trail, now, random) else { unreachable!() };
                trail.push(pick.ticket.id());
                let (server, elsewhere) = (*pick.ticket.service(), pick.elsewhere);
                return Choice { server, elsewhere, ticket: Some(pick.ticket) };
            }
            Self::TowerP2c(servers) => {
                let one = below(servers.len(), random);
                let other = (one + 1 + below(servers.len() - 1, random)) % servers.len();
                let [load, rival] = [one, other].map(|server| servers[server].load(now));
                let server = if rival < load { other } else { one };
                servers[server].in_flight += 1;
                server
            }
            Self::RoundRobin { servers, last } => {
                *last = (*last + 1) % *servers;
                *last
            }
            Self::Envoy(envoy) => {
                let server = envoy.pick(now, random);
                envoy.servers[server].in_flight += 1;
                server
            }
        };
        Choice { server, elsewhere: false, ticket: None }
    }

    pub(super) fn end_attempt(
        &mut self,
        choice: Choice,
        health: Health,
        after: Duration,
        now: Duration,
        random: &mut CallRandom,
    ) {
        let Choice { server, ticket, .. } = choice;
        match self {
            Self::Ours(set) => {
                if let Some(ticket) = ticket {
                    drop(set.end_ticket(ticket, &End::judged(health, after), now, random));
                }
            }
            Self::TowerP2c(servers) => {
                servers[server].in_flight -= 1;
                servers[server].update(after.as_secs_f64(), now);
            }
            Self::RoundRobin { .. } => {}
            Self::Envoy(envoy) => envoy.end_attempt(server, health != Health::Served, now),
        }
    }
}
