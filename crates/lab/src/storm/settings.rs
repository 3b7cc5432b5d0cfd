//! The scene of a storm, from the options of the command line.
//!
//! Input: the options. Output: the scene, or an error if no call could succeed in it, or if it is too short to show a
//! slow recovery.

use std::ops::Range;
use std::time::Duration;

use super::curves::SECOND;
use super::fleet::StoreSettings;
use super::server::{Fault, ServerSettings};
use super::simulation::Scene;
use super::tick::ticks;
use super::{FaultKind, Storm, seconds};
use crate::error::LabError;
use crate::text;

/// The most calls: more would overflow 32 bits, and take hours.
pub(super) const MOST_CALLS: f64 = 4e9;
pub(super) const TOO_MANY: &str = "more than 4000 million calls: shorten --duration, or have fewer";

/// The most requests in flight, which take some 5 GB.
const MOST_IN_FLIGHT: f64 = 50e6;

impl Storm {
    /// Returns the scene, if calls can succeed in it and it lasts long enough to judge the result.
    pub(super) fn scene(&self, seed: u64) -> Result<Scene, LabError> {
        self.check()?;
        let service = ticks(self.service);
        let workers = whole(self.capacity() * seconds(service)).max(1);
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
            restart_every: self.restart_every.map(ticks),
            seed,
        })
    }

    /// Returns the store of a budget that all clients share.
    pub(super) fn store_settings(&self) -> StoreSettings {
        let options = &self.store;
        let start = ticks(options.store_down_at);
        let down = start..start.saturating_add(options.store_outage.map_or(0, ticks));
        StoreSettings {
            // A message takes at least one tick, one way.
            round_trip: ticks(options.store_round_trip).max(2),
            patience: options.patience,
            down,
            loses_data: options.store_loses_data,
        }
    }

    fn check(&self) -> Result<(), LabError> {
        for (name, duration) in [
            ("--network", self.network),
            ("--service", self.service),
            ("--timeout", self.timeout),
            ("--outage", self.outage),
            ("--burst", self.burst.unwrap_or(Duration::MAX)),
            ("--drop-every", self.drop_every.unwrap_or(Duration::MAX)),
            ("--restart-every", self.restart_every.unwrap_or(Duration::MAX)),
        ] {
            if duration.is_zero() {
                return Err(LabError::new(format!("{name} must be longer than 0 s")));
            }
        }
        let by_chance = [FaultKind::Refuse, FaultKind::Lose];
        for (name, is_set, faults, names) in [
            ("--slowdown", self.slowdown.is_some(), &[FaultKind::Slow][..], "slow"),
            ("--failure-rate", self.failure_rate.is_some(), &by_chance, "refuse or lose"),
            ("--burst", self.burst.is_some(), &by_chance, "refuse or lose"),
        ] {
            if is_set && !faults.contains(&self.fault) {
                return Err(LabError::new(format!("{name} needs --fault {names}")));
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
        let least = 1.0 / seconds(ticks(self.service));
        if self.capacity.is_some_and(|capacity| capacity < least) {
            return Err(LabError::new(format!(
                "--capacity must be at least {}, which one worker can do: a longer --service allows less",
                text::plain(least)
            )));
        }
        let rest = self.duration.saturating_sub(self.at.saturating_add(self.outage));
        if rest < self.settling() * 2 {
            let least = text::brief(self.settling() * 2);
            return Err(LabError::new(format!(
                "--duration must reach {least} beyond the outage, to show the recovery"
            )));
        }
        let load = f64::from(self.clients) * self.rate;
        if load * self.duration.as_secs_f64() > MOST_CALLS {
            return Err(LabError::new(TOO_MANY));
        }
        if self.capacity() * (self.queue + self.timeout).as_secs_f64() > MOST_IN_FLIGHT {
            return Err(LabError::new(
                "more than 50 million requests would be under way: shorten --queue or --timeout",
            ));
        }
        Ok(())
    }

    /// Returns the requests that the server is to answer in a second.
    fn capacity(&self) -> f64 {
        self.capacity.unwrap_or(f64::from(self.clients) * self.rate / self.load)
    }

    pub(super) fn slowdown(&self) -> u32 {
        self.slowdown.unwrap_or(10)
    }

    pub(super) fn failure_rate(&self) -> f64 {
        self.failure_rate.unwrap_or(1.0)
    }

    /// Returns the time at the end of the calls that is not counted, because the load falls after it.
    fn settling(&self) -> Duration {
        self.timeout.saturating_mul(10)
    }

    /// Returns the seconds before the fault, and those in which the service should have recovered.
    pub(super) fn spans(&self, scene: &Scene) -> (Range<usize>, Range<usize>) {
        let second = |ticks: u64| usize::try_from(ticks / SECOND).unwrap_or(usize::MAX);
        let Range { start, end } = scene.server.faulty;
        // The result of a call that begins later may be due to the fault.
        let before = second(start.saturating_sub(ticks(self.settling())));
        let last = scene.duration.saturating_sub(ticks(self.settling()));
        (0..before, second(end.next_multiple_of(SECOND))..second(last))
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "never below zero, and the cast saturates")]
fn whole(number: f64) -> u64 {
    // The tolerance keeps a rounding error from raising a whole number.
    (number - 1e-9).ceil() as u64
}
