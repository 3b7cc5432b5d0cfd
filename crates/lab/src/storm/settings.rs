//! The scene of a storm, from the command line.
//!
//! What flows in: the flags. What flows out: the scene, or why there cannot be one. Nobody is told
//! that a storm is metastable where no call could have succeeded, or nobody looked for long enough.

use std::ops::Range;
use std::time::Duration;

use super::client::ticks;
use super::curves::SECOND;
use super::server::{Fault, ServerSettings};
use super::simulation::Scene;
use super::{FaultKind, Storm, seconds};
use crate::error::LabError;
use crate::text;

/// The longest time that can be set: there are curves by the second.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// More calls than these could not be counted in 32 bits, and would take hours.
pub(super) const MOST_CALLS: f64 = 4e9;
pub(super) const TOO_MANY: &str = "more than 4000 million calls: shorten --duration, or have fewer";

/// So many requests under way take some 5 GB.
const MOST_UNDER_WAY: f64 = 50e6;

impl Storm {
    /// The scene, in which calls can succeed and which lasts long enough to see what comes of it.
    pub(super) fn scene(&self, seed: u64) -> Result<Scene, LabError> {
        self.check()?;
        let service = ticks(self.service);
        let workers = f64::from(self.clients) * self.rate * seconds(service) / self.load;
        let workers = whole(workers).max(1);
        let queue = workers.saturating_mul(ticks(self.queue)) / service;
        let fault = match self.fault {
            FaultKind::Stall => Fault::Stall,
            FaultKind::Slow => Fault::Slow(self.slowdown()),
            FaultKind::Refuse => Fault::Refuse(self.failure_rate()),
            FaultKind::Lose => Fault::Lose(self.failure_rate()),
        };
        let start = ticks(self.at);
        let faulty = start..start.saturating_add(ticks(self.outage));
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        Ok(Scene {
            clients: self.clients,
            rate: self.rate,
            duration: ticks(self.duration),
            end: ticks(self.duration.saturating_add(self.settling())),
            timeout: ticks(self.timeout),
            network: ticks(self.network),
            server: ServerSettings {
                workers,
                service,
                queue,
                fault,
                faulty,
                burst: self.burst.map(ticks),
                refusal_cost: self.refusal_cost,
            },
            drop_every: self.drop_every.map(ticks),
            seed,
        })
    }

    fn check(&self) -> Result<(), LabError> {
        for (name, duration) in [
            ("--network", self.network),
            ("--service", self.service),
            ("--timeout", self.timeout),
            ("--outage", self.outage),
            ("--burst", self.burst.unwrap_or(Duration::MAX)),
            ("--drop-every", self.drop_every.unwrap_or(Duration::MAX)),
        ] {
            if duration.is_zero() {
                return Err(LabError::new(format!("{name} must be longer than 0 s")));
            }
        }
        let by_chance = [FaultKind::Refuse, FaultKind::Lose];
        for (name, is_set, faults) in [
            ("--slowdown", self.slowdown.is_some(), &[FaultKind::Slow][..]),
            ("--failure-rate", self.failure_rate.is_some(), &by_chance),
            ("--burst", self.burst.is_some(), &by_chance),
        ] {
            if is_set && !faults.contains(&self.fault) {
                return Err(LabError::new(format!("{name} belongs to another --fault")));
            }
        }
        let soonest = 2 * ticks(self.network) + ticks(self.service);
        if ticks(self.timeout) < soonest {
            return Err(LabError::new(format!(
                "--timeout must be at least {}, as long as --service and --network twice, or no \
                 call could ever succeed",
                text::brief(Duration::from_millis(soonest))
            )));
        }
        let rest = self.duration.saturating_sub(self.at.saturating_add(self.outage));
        if rest < self.settling() * 2 {
            let least = text::brief(self.settling() * 2);
            return Err(LabError::new(format!(
                "--duration must reach {least} beyond the outage, to see what comes of it"
            )));
        }
        let load = f64::from(self.clients) * self.rate;
        if load * self.duration.as_secs_f64() > MOST_CALLS {
            return Err(LabError::new(TOO_MANY));
        }
        if load / self.load * (self.queue + self.timeout).as_secs_f64() > MOST_UNDER_WAY {
            return Err(LabError::new(
                "more than 50 million requests would be under way: shorten --queue or --timeout",
            ));
        }
        Ok(())
    }

    pub(super) fn slowdown(&self) -> u32 {
        self.slowdown.unwrap_or(10)
    }

    pub(super) fn failure_rate(&self) -> f64 {
        self.failure_rate.unwrap_or(1.0)
    }

    /// In this time before the last call, what became of a call may be due to the calm after it.
    fn settling(&self) -> Duration {
        self.timeout.saturating_mul(10)
    }

    /// The seconds before the fault, and those in which the service should be well again.
    pub(super) fn spans(&self, scene: &Scene) -> (Range<usize>, Range<usize>) {
        let second = |ticks: u64| usize::try_from(ticks / SECOND).unwrap_or(usize::MAX);
        let Range { start, end } = scene.server.faulty;
        // Of a call that begins so late, what becomes of it may be due to the fault.
        let before = second(start.saturating_sub(ticks(self.settling())));
        let last = scene.duration.saturating_sub(ticks(self.settling()));
        (0..before, second(end.next_multiple_of(SECOND))..second(last))
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "never below zero, and the cast saturates"
)]
fn whole(number: f64) -> u64 {
    // A whole number is not to become one more by the dust of a division.
    (number - 1e-9).ceil() as u64
}

/// A duration on the command line.
pub(super) fn length(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(length) if length <= LONGEST => Ok(length),
        Ok(_) => Err("must be at most 24 h".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// A rate on the command line.
pub(super) fn positive(text: &str) -> Result<f64, String> {
    let legal = |number| (0.0001..=1e6).contains(&number);
    number(text, legal, "must be from 0.0001 to 1000000")
}

/// A number from 0 to 1 on the command line.
pub(super) fn share(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "must be from 0 to 1")
}

/// The load as a share of what a server can do, on the command line.
pub(super) fn load(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0001..=2.0).contains(&number), "must be from 0.0001 to 2")
}

/// The work of a refusal, on the command line.
pub(super) fn cost(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=100.0).contains(&number), "must be from 0 to 100")
}

fn number(text: &str, legal: fn(f64) -> bool, rule: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if legal(number) => Ok(number),
        Ok(_) => Err(rule.to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}
