//! `lab limits`: adaptive limits before a server whose capacity changes.
//!
//! Input: rules and scenes. Output: for each phase of a scene the limit, the share of the capacity that was served, and
//! the latency, and curves over time. The library's own limits decide, in virtual time.

mod figure;
mod scene;
mod simulation;

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::policy::{GuardKind, GuardWord};
use crate::progress::Progress;
use crate::text;
use crate::values::length;
use scene::{Phase, Scene};
use simulation::{Second, World};

/// The options of `lab limits`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Limits {
    /// Limits to compare: aimd, vegas, gradient2, bulkhead, with optional settings, such as vegas:most=50 [default: the
    /// first three]
    #[arg(value_name = "LIMIT", value_parser = parse)]
    limits: Vec<GuardWord>,
    /// Scenes [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SCENE,…")]
    scenes: Vec<Scene>,
    /// Queue length in front of the server's 16 workers; further requests are refused
    #[arg(long, default_value_t = 64, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    queue: u32,
    /// Client timeout
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = length)]
    timeout: Duration,
}

const HELP: &str = "Limits:
  aimd       by calls that the server drops: backoff
  vegas      by the latency above a baseline
  gradient2  by the trend of latencies
  bulkhead   a fixed limit: limit
All but the last: initial, least, most; such as aimd:backoff=0.7,most=50

The server has 16 workers of 50 ms (320 requests a second) and a queue. A client calls 400 times a
second at random times; the scenes failures, bimodal and idle have phases with fewer calls. The
client's limit refuses calls at once. The table has the second half of each phase.";

/// Parses a limit in a word.
fn parse(word: &str) -> Result<GuardWord, String> {
    let guard = GuardWord::parse(word)?;
    match guard.kind {
        GuardKind::Breaker(_) | GuardKind::RateLimit(_) | GuardKind::Throttle(_) | GuardKind::Pause(_) => {
            Err("must be aimd, vegas, gradient2 or bulkhead".to_owned())
        }
        _ => Ok(guard),
    }
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    scenes: &'a [Shown],
}

/// The results of one scene.
#[derive(Debug, Serialize)]
struct Shown {
    scene: &'static str,
    limits: Vec<Course>,
}

/// The result of one limit in a scene.
#[derive(Debug, Serialize)]
struct Course {
    limit: String,
    phases: Vec<Figures>,
    #[serde(skip)]
    seconds: Vec<Second>,
}

/// The figures of the second half of a phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Figures {
    phase: &'static str,
    /// The lowest and the highest limit.
    limit: (u32, u32),
    /// The calls served, as a share of those that the server could have served.
    served: Option<f64>,
    /// The shares of the calls that the limit refused, and that the server dropped.
    refused: f64,
    dropped: f64,
    /// The median and the 99th percentile of the latencies, in seconds.
    median: Option<f64>,
    p99: Option<f64>,
}

impl Figures {
    fn of(phase: &Phase, seconds: &[Second]) -> Self {
        let sum = |of: fn(&Second) -> u32| seconds.iter().map(of).map(f64::from).sum::<f64>();
        let calls = sum(|second| second.calls).max(1.0);
        let (refused, dropped) = (sum(|second| second.refused), sum(|second| second.dropped));
        let possible = |second: &Second| second.capacity.min(f64::from(second.calls));
        let possible: f64 = seconds.iter().map(possible).sum();
        let mut latencies: Vec<_> = seconds.iter().flat_map(|second| &second.latencies).collect();
        latencies.sort_unstable();
        let percentile = |percent: usize| {
            let rank = (latencies.len() * percent).div_ceil(100).checked_sub(1)?;
            latencies.get(rank).map(|latency| latency.as_secs_f64())
        };
        let limits = || seconds.iter().map(|second| second.limit);
        Self {
            phase: phase.name,
            limit: (limits().min().unwrap_or(0), limits().max().unwrap_or(0)),
            served: (possible > 0.0).then(|| latencies.len() as f64 / possible),
            refused: refused / calls,
            dropped: dropped / calls,
            median: percentile(50),
            p99: percentile(99),
        }
    }
}

impl Limits {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let shown = self.shown(common.seed())?;
        let document = Document { seed: common.seed(), scenes: &shown };
        common.show(out, &document, Some(&|| figure::figure(&shown)), |out| print(out, &shown))?;
        Ok(Found::Fine)
    }

    fn shown(&self, seed: u64) -> Result<Vec<Shown>, LabError> {
        if self.timeout.is_zero() {
            return Err(LabError::new("--timeout must be longer than 0 s"));
        }
        let scenes = match &self.scenes[..] {
            [] => Scene::value_variants(),
            given => given,
        };
        let limits = match &self.limits[..] {
            [] => {
                let words = ["aimd", "vegas", "gradient2"].map(parse);
                words.into_iter().collect::<Result<Vec<_>, _>>().map_err(LabError::new)?
            }
            given => given.to_vec(),
        };
        let seconds = |scene: &Scene| -> u64 { scene.phases().iter().map(|phase| u64::from(phase.seconds)).sum() };
        let total = scenes.iter().map(seconds).sum::<u64>() * limits.len() as u64;
        let mut progress = Progress::new(total);
        let mut shown = Vec::new();
        for scene in scenes {
            let phases = scene.phases();
            let queue = usize::try_from(self.queue).unwrap_or(usize::MAX);
            let world = World { phases: &phases, queue, timeout: self.timeout, seed };
            let mut course = |word: &GuardWord| {
                let seconds = seconds_of(&word.kind, world, &mut progress);
                Course { limit: word.name.clone(), phases: figures(&phases, &seconds), seconds }
            };
            let limits = limits.iter().map(&mut course).collect();
            shown.push(Shown { scene: scene.title(), limits });
        }
        Ok(shown)
    }
}

/// Runs a scene with a limit of its own.
fn seconds_of(kind: &GuardKind, world: World<'_>, progress: &mut Progress) -> Vec<Second> {
    macro_rules! run {
        ($guard:expr) => {
            simulation::simulate(
                world,
                &$guard.clone().shared(true),
                |guard, now| guard.usage_at("", now).limit,
                progress,
            )
        };
    }
    match kind {
        GuardKind::Aimd(limit) => run!(limit),
        GuardKind::Vegas(limit) => run!(limit),
        GuardKind::Gradient2(limit) => run!(limit),
        GuardKind::Bulkhead(limit) => run!(limit),
        // No option makes them.
        GuardKind::Breaker(_) | GuardKind::RateLimit(_) | GuardKind::Throttle(_) | GuardKind::Pause(_) => Vec::new(),
    }
}

/// Returns the figures of each phase, from its second half.
fn figures(phases: &[Phase], seconds: &[Second]) -> Vec<Figures> {
    let mut end = 0;
    let figures = |phase: &Phase| {
        let length = usize::try_from(phase.seconds).unwrap_or(usize::MAX);
        end += length;
        Figures::of(phase, seconds.get(end - length / 2..end).unwrap_or_default())
    };
    phases.iter().map(figures).collect()
}

fn print(out: &mut dyn Write, shown: &[Shown]) -> Result<(), LabError> {
    let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |time| text::duration(text::seconds(time)));
    for (number, Shown { scene, limits }) in shown.iter().enumerate() {
        let mut table = text::table([scene, "phase", "limit", "served", "refused", "dropped", "median", "p99"]);
        for Course { limit, phases, .. } in limits {
            for figures in phases {
                let (low, high) = figures.limit;
                table.add_row([
                    limit.clone(),
                    figures.phase.to_owned(),
                    if low == high { low.to_string() } else { format!("{low} to {high}") },
                    figures.served.map_or("-".to_owned(), text::percent),
                    text::percent(figures.refused),
                    text::percent(figures.dropped),
                    time(figures.median),
                    time(figures.p99),
                ]);
            }
        }
        if number > 0 {
            writeln!(out)?;
        }
        text::print_table(out, &table)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
