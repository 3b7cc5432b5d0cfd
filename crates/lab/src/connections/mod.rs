//! `lab connections`: faults that end many calls at once, and what each policy makes of them.
//!
//! Input: policies, scenes, fleets of clients. Output, for each: success, attempts a call and the peak during the
//! fault, and the time to recover. Clients multiplex calls on connections; servers have workers, a queue, and die. The
//! library's own calls, budgets, breakers and endpoints decide, in virtual time.

mod client;
mod connection;
mod counts;
mod figure;
mod fleet;
mod scene;
mod server;
mod simulation;
mod times;

use std::io::Write;
use std::num::NonZero;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::events::nanoseconds;
use crate::progress::Progress;
use crate::storm::{self, Choice, Policy};
use crate::text;
use crate::values::length;
use counts::Figures;
use fleet::Fleet;
use scene::Scene;
use simulation::World;
use times::{SECOND, Times};

/// The seconds before the fault, and after it.
const BEFORE: u64 = 10;
const AFTER: u64 = 20;

/// The policies that are compared unless others are chosen.
const POLICIES: [&str; 7] = ["none", "former", "ours", "ratio", "grpc-throttle", "aws-quota", "unlimited"];

/// The options of `lab connections`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Connections {
    /// Policies to compare, as for `lab storm` [default: none, former, ours, ratio, grpc-throttle, aws-quota,
    /// unlimited]
    #[arg(value_name = "POLICY", value_parser = storm::parse)]
    policies: Vec<Choice>,
    /// Scenes [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SCENE,…")]
    scenes: Vec<Scene>,
    /// Fleets: clients x calls in flight / connections of each, such as 1x64/4, or clients x calls per second, such as
    /// 1000x1/s [default: some that fit the scene]
    #[arg(long, value_delimiter = ',', value_name = "FLEET,…", value_parser = Fleet::parse)]
    fleets: Vec<Fleet>,
    /// Duration of the fault [default: 60s; 5s for `balancer`]
    #[arg(long, value_name = "TIME", value_parser = length)]
    fault: Option<Duration>,
    /// Time from the death of a crashing server to its return
    #[arg(long, default_value = "200ms", value_name = "TIME", value_parser = length)]
    restart: Duration,
}

const HELP: &str = "A request takes 33 ms of a worker (16 to 50 ms) and 5 ms each way. The load is 0.8 of the capacity
of the servers that are meant to carry it (`balancer`: 0.9). A client takes its connections in turn; the
first call that needs one opens it, and the others wait for it. A client of `1x64` has 64 tasks, each of
which makes one call after another. If a call ends early, its task pauses until the usual time of a call
is over. Under the policy `former`, guards and endpoints count each failed call as well.
The table has the success of the calls that begin during the fault, the attempts that reached a server or
were refused a connection in that time, and the most in 100 ms as a multiple of the usual number.";

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    scenes: &'a [Shown],
}

/// The results of one scene for one fleet.
#[derive(Debug, Serialize)]
struct Shown {
    scene: &'static str,
    fleet: String,
    policies: Vec<Figures>,
}

impl Connections {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let shown = self.shown(common.seed())?;
        let document = Document { seed: common.seed(), scenes: &shown };
        common.show(out, &document, Some(&|| figure::figure(&shown)), |out| print(out, &shown))?;
        Ok(Found::Fine)
    }

    fn shown(&self, seed: u64) -> Result<Vec<Shown>, LabError> {
        let policies = self.policies()?;
        let worlds = self.worlds(seed)?;
        let figures = simulated(&worlds, &policies);
        let shown = worlds.iter().zip(figures.chunks(policies.len()));
        let of_world = |(world, figures): (&World, &[Figures])| Shown {
            scene: world.scene.title(),
            fleet: world.fleet.title(),
            policies: figures.to_vec(),
        };
        Ok(shown.map(of_world).collect())
    }

    fn policies(&self) -> Result<Vec<Policy>, LabError> {
        let usual: Vec<_> = POLICIES.iter().filter_map(|word| storm::parse(word).ok()).collect();
        let choices = if self.policies.is_empty() { &usual } else { &self.policies };
        // No budget here depends on the rate of calls.
        let policies = storm::chosen(choices, None, 1.0)?;
        match policies.iter().find(|policy| policy.is_fleet()) {
            Some(policy) => Err(LabError::new(format!("{}: fleet budgets are not simulated here", policy.name))),
            None => Ok(policies),
        }
    }

    fn worlds(&self, seed: u64) -> Result<Vec<World>, LabError> {
        let scenes = if self.scenes.is_empty() { Scene::value_variants() } else { &self.scenes };
        let worlds = scenes.iter().flat_map(|scene| {
            let fleets = if self.fleets.is_empty() { scene.fleets() } else { self.fleets.clone() };
            let fault = self.fault.map_or(scene.fault(), |fault| fault.as_secs());
            fleets.into_iter().map(move |fleet| {
                let start = BEFORE * SECOND;
                let end = start + fault * SECOND;
                let times = Times { fault: start..end, end: end + AFTER * SECOND };
                World { scene: *scene, fleet, times, restart: nanoseconds(self.restart), seed }
            })
        });
        match self.fault.map_or(1, |fault| fault.as_secs()) {
            1..=3600 => Ok(worlds.collect()),
            _ => Err(LabError::new("--fault must be from 1 s to 1 h")),
        }
    }
}

/// Runs each world under each policy, in parallel.
fn simulated(worlds: &[World], policies: &[Policy]) -> Vec<Figures> {
    let seconds = worlds.iter().map(|world| world.times.end / SECOND).sum::<u64>() * policies.len() as u64;
    let progress = Mutex::new(Progress::new(seconds));
    let pairs: Vec<_> = worlds.iter().flat_map(|world| policies.iter().map(move |policy| (world, policy))).collect();
    let mut figures = vec![None; pairs.len()];
    let to_do = Mutex::new(pairs.iter().zip(&mut figures));
    let take = || to_do.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get).min(pairs.len()) {
            scope.spawn(|| {
                while let Some(((world, policy), figures)) = take() {
                    let step = || progress.lock().unwrap_or_else(PoisonError::into_inner).step();
                    let counts = simulation::run(world, policy, step);
                    *figures = Some(counts.figures(policy.name.clone(), &world.times));
                }
            });
        }
    });
    figures.into_iter().flatten().collect()
}

fn print(out: &mut dyn Write, shown: &[Shown]) -> Result<(), LabError> {
    for (number, Shown { scene, fleet, policies }) in shown.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        let title = format!("{scene}, {fleet}");
        let columns = ["success", "attempts/call", "peak", "recovery", "lost calls"];
        let mut table = text::table([&*title].into_iter().chain(columns));
        for figures in policies {
            table.add_row([
                figures.policy.clone(),
                text::percent(figures.success),
                format!("{:.3}", figures.attempts_per_call),
                format!("{:.1} ×", figures.peak),
                figures.recovery_seconds.map_or("none".to_owned(), |seconds| format!("{seconds} s")),
                figures.lost.to_string(),
            ]);
        }
        text::print_table(out, &table)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
