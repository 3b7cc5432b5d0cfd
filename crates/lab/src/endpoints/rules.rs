//! The rules that choose a server: the library's set of endpoints, and rivals as their projects describe them.
//!
//! The rivals are plain: lists and floating point.

use std::time::Duration;

use clap::ValueEnum;
use reattempt::guard::contract::{End, Health};
use reattempt::schedule::{CallRandom, Random};
use reattempt_control::{EndpointSet, EndpointTicket, Trail};

use crate::chance::fraction;

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
            Self::Envoy => Rule::Envoy(Envoy { servers: of, second, swept: Duration::ZERO }),
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

/// The servers that a call has tried, for the rules that use them.
#[derive(Default)]
pub(super) struct Tried {
    trail: Trail,
    servers: Vec<usize>,
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
    /// The latency estimate in seconds.
    latency: Option<f64>,
    /// The time of the estimate's last change, or of the return to service.
    changed: Duration,
    in_a_row: u32,
    ejected: Option<Duration>,
    ejections: u32,
    /// The calls of this interval that have ended, and those that succeeded.
    calls: u32,
    successes: u32,
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

/// Envoy's servers, with its defaults but for three settings that users of several servers make.
///
/// - Half of the servers may be ejected, where its default is a tenth; with two priorities all may be.
/// - One may always be ejected (`always_eject_one_host`).
/// - A retry avoids the servers of earlier attempts (`previous_hosts`), with three further draws.
pub(super) struct Envoy {
    servers: Vec<Seen>,
    /// The servers from here on are the second priority.
    second: usize,
    swept: Duration,
}

const ENVOY_IN_A_ROW: u32 = 5;
const ENVOY_INTERVAL: Duration = Duration::from_secs(10);
const ENVOY_BASE: Duration = Duration::from_secs(30);
const ENVOY_LONGEST: Duration = Duration::from_secs(300);
const ENVOY_SHARE: f64 = 0.5;
/// If fewer than this share of the servers is in service, all of them are used.
const ENVOY_PANIC: f64 = 0.5;
/// A priority takes this multiple of its share in service.
const ENVOY_OVERPROVISIONING: f64 = 1.4;
/// The further draws for a retry that met a server which the call has tried.
const ENVOY_DRAWS: usize = 3;
/// The success rates of an interval count if so many servers have so many calls, and eject below the mean by so many
/// standard deviations.
const ENVOY_SERVERS: usize = 5;
const ENVOY_CALLS: u32 = 100;
const ENVOY_DEVIATIONS: f64 = 1.9;

impl Envoy {
    /// Every interval, ejections that are over end, servers with an unusual success rate are ejected, and servers in
    /// service are forgiven an ejection.
    fn sweep(&mut self, now: Duration) {
        if now < self.swept + ENVOY_INTERVAL {
            return;
        }
        self.swept = now;
        for server in &mut self.servers {
            if let Some(at) = server.ejected
                && now >= at + (ENVOY_BASE * server.ejections).min(ENVOY_LONGEST)
            {
                (server.ejected, server.in_a_row, server.changed) = (None, 0, now);
            }
        }
        for server in self.unusual() {
            self.eject(server, now);
        }
        for server in &mut self.servers {
            (server.calls, server.successes) = (0, 0);
            if server.ejected.is_none() && now >= server.changed + ENVOY_INTERVAL {
                server.ejections = server.ejections.saturating_sub(1);
            }
        }
    }

    /// Returns the servers whose success rate was far below the mean.
    fn unusual(&self) -> Vec<usize> {
        let counted = |seen: &Seen| seen.ejected.is_none() && seen.calls >= ENVOY_CALLS;
        let rates = self.servers.iter().enumerate().filter(|(_, seen)| counted(seen));
        let rates: Vec<_> =
            rates.map(|(server, seen)| (server, f64::from(seen.successes) / f64::from(seen.calls))).collect();
        if rates.len() < ENVOY_SERVERS {
            return Vec::new();
        }
        let mean =
            |values: &dyn Fn(f64) -> f64| rates.iter().map(|(_, rate)| values(*rate)).sum::<f64>() / rates.len() as f64;
        let average = mean(&|rate| rate);
        let deviation = mean(&|rate| (rate - average).powi(2)).sqrt();
        let lowest = average - ENVOY_DEVIATIONS * deviation;
        rates.into_iter().filter(|(_, rate)| *rate < lowest).map(|(server, _)| server).collect()
    }

    /// Ejects a server, if the share allows one more.
    fn eject(&mut self, server: usize, now: Duration) {
        let ejected = self.servers.iter().filter(|server| server.ejected.is_some()).count();
        let share = if self.second < self.servers.len() { 1.0 } else { ENVOY_SHARE };
        let allowed = ejected == 0 || (ejected + 1) as f64 / self.servers.len() as f64 <= share;
        let server = &mut self.servers[server];
        if allowed && server.ejected.is_none() {
            (server.ejected, server.ejections) = (Some(now), server.ejections + 1);
        }
    }

    /// Returns the servers of the priority that a pick uses. Each takes what it has in service of the picks.
    fn usable(&self, random: &mut CallRandom) -> Vec<usize> {
        let second = self.second.min(self.servers.len());
        let priorities = [0..second, second..self.servers.len()];
        let in_service = |server: &usize| self.servers[*server].ejected.is_none();
        let shares = priorities.clone().map(|servers| match servers.len() {
            0 => 0.0,
            length => servers.filter(in_service).count() as f64 / length as f64,
        });
        let [first, other] = shares.map(|share| (share * ENVOY_OVERPROVISIONING).min(1.0));
        let all = first + other;
        let first = if all > 0.0 { first / all.min(1.0) } else { 1.0 };
        let priority = usize::from(fraction(random) >= first);
        let panics = all < 1.0 && shares[priority] < ENVOY_PANIC;
        priorities[priority].clone().filter(|server| panics || in_service(server)).collect()
    }

    fn pick(&mut self, tried: &[usize], now: Duration, random: &mut CallRandom) -> usize {
        self.sweep(now);
        let mut picked = self.draw(random);
        for _ in 0..ENVOY_DRAWS {
            if tried.contains(&picked) {
                picked = self.draw(random);
            }
        }
        picked
    }

    fn draw(&self, random: &mut CallRandom) -> usize {
        let usable = self.usable(random);
        let [one, other] = [0, 1].map(|_| usable[below(usable.len(), random)]);
        if self.servers[other].in_flight < self.servers[one].in_flight { other } else { one }
    }

    fn end_attempt(&mut self, server: usize, failed: bool, now: Duration) {
        self.sweep(now);
        let seen = &mut self.servers[server];
        seen.in_flight -= 1;
        seen.calls += 1;
        seen.successes += u32::from(!failed);
        seen.in_a_row = if failed { seen.in_a_row + 1 } else { 0 };
        if seen.in_a_row == ENVOY_IN_A_ROW {
            seen.in_a_row = 0;
            self.eject(server, now);
        }
    }
}

/// Draws a number below `bound`.
fn below(bound: usize, random: &mut CallRandom) -> usize {
    let drawn = (u128::from(random.next_u64()) * bound as u128) >> 64;
    usize::try_from(drawn).unwrap_or(0)
}

impl Rule {
    pub(super) fn pick(&mut self, tried: &mut Tried, now: Duration, random: &mut CallRandom) -> Choice {
        let server = match self {
            Self::Ours(set) => {
                // The set is never empty.
                let Some(pick) = set.pick(&tried.trail, now, random) else { unreachable!() };
                tried.trail.push(pick.ticket.id());
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
                let server = envoy.pick(&tried.servers, now, random);
                tried.servers.push(server);
                envoy.servers[server].in_flight += 1;
                server
            }
        };
        Choice { server, elsewhere: false, ticket: None }
    }

    pub(super) fn end_attempt(
        &mut self,
        choice: Choice,
        end: &End,
        after: Duration,
        now: Duration,
        random: &mut CallRandom,
    ) {
        let Choice { server, ticket, .. } = choice;
        match self {
            Self::Ours(set) => {
                if let Some(ticket) = ticket {
                    drop(set.end_ticket(ticket, end, now, random));
                }
            }
            Self::TowerP2c(servers) => {
                servers[server].in_flight -= 1;
                servers[server].update(after.as_secs_f64(), now);
            }
            Self::RoundRobin { .. } => {}
            Self::Envoy(envoy) => {
                let failed = !matches!(end, End::Judged { health: Health::Served, .. } | End::Abandoned { .. });
                envoy.end_attempt(server, failed, now);
            }
        }
    }
}
