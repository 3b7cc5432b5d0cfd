//! `lab endpoints`: several servers, of which some are faulty for a while, under rules that choose the server.
//!
//! Input: rules and scenes. Output: success, latency and the attempts at faulty servers, and curves over time. The
//! library's own set of endpoints and its own call decide, in virtual time.

mod figure;
mod rules;
mod scene;
mod simulation;

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::progress::Progress;
use crate::text;
use crate::values::{length, load};
use rules::Which;
use scene::{Scene, State};
use simulation::{Course, SERVICE, Second, WORKERS, World};

/// The seconds before the fault.
const BEFORE: u64 = 20;
/// The seconds in which the share of the faulty servers after the fault is measured.
const STRETCH: usize = 2;
/// The seconds after the fault: more than the longest ejection.
const AFTER: u64 = 40;

/// The options of `lab endpoints`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Endpoints {
    /// Rules to compare [default: all]
    #[arg(value_name = "RULE")]
    rules: Vec<Which>,
    /// Scenes [default: all]
    #[arg(long, value_delimiter = ',', value_name = "SCENE,…")]
    scenes: Vec<Scene>,
    /// Load, as a fraction of the total capacity of healthy servers
    #[arg(long, default_value_t = 0.5, value_name = "NUMBER", value_parser = load)]
    load: f64,
    /// Duration of the fault
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = length)]
    fault: Duration,
}

const HELP: &str = "Each server has 4 workers of 20 ms (200 requests a second) and a queue of 64. One client calls at
random times, with the default retries and the default budget. The other rules use the same retries.
tower's balancer and round robin pick the server of each attempt independently of earlier attempts.
In the scenes `mixed`, `tiers` and `failing-tier` the load is a fraction of the capacity of two servers. The table
has the calls that start during the fault, and the success in the 40 s after it.";

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    scenes: &'a [Shown],
}

/// The results of one scene.
#[derive(Debug, Serialize)]
struct Shown {
    scene: &'static str,
    rules: Vec<Figures>,
}

/// The figures of one rule during the fault.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Figures {
    rule: &'static str,
    success: f64,
    /// The share of the attempts that went to faulty servers.
    at_faulty: f64,
    attempts_per_call: f64,
    /// Seconds.
    median: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    /// The most attempts at one of the good servers, as a multiple of their mean.
    busiest: Option<f64>,
    /// The seconds after the fault until faulty servers get half of their fair share.
    back: Option<usize>,
    /// The success of the calls that begin in the 40 s after the fault.
    after: f64,
    per_second: Vec<Second>,
}

impl Figures {
    fn of(rule: Which, world: &World, course: Course) -> Self {
        let Course { seconds, mut latencies, by_server } = course;
        let [before, fault, _] = world.seconds.map(|seconds| usize::try_from(seconds).unwrap_or(0));
        let sum = |seconds: &[Second], of: fn(&Second) -> u32| -> f64 {
            seconds.iter().map(|second| f64::from(of(second))).sum()
        };
        let share = |part: f64, of: f64| part / of.max(1.0);
        let within = seconds.get(before..before + fault).unwrap_or_default();
        let later = seconds.get(before + fault..).unwrap_or_default();
        let attempts = sum(within, |second| second.attempts);
        latencies.sort_unstable();
        let percentile = |per_mille: usize| {
            let rank = (latencies.len() * per_mille).div_ceil(1000).checked_sub(1)?;
            latencies.get(rank).map(Duration::as_secs_f64)
        };
        let servers = world.scene.servers();
        let tier = servers.get(..world.scene.first_tier()).unwrap_or_default();
        let faulty = tier.iter().filter(|state| **state != State::Well).count();
        let fair = faulty as f64 / tier.len().max(1) as f64;
        let has_half = |seconds: &[Second]| {
            sum(seconds, |second| second.at_faulty) >= 0.5 * fair * sum(seconds, |second| second.attempts)
        };
        let states = servers.into_iter().zip(by_server);
        let good: Vec<_> = states.filter(|(state, _)| *state == State::Well).map(|(_, count)| count).collect();
        let mean = good.iter().sum::<u64>() as f64 / good.len() as f64;
        Self {
            rule: rule.title(),
            success: share(sum(within, |second| second.succeeded), sum(within, |second| second.calls)),
            at_faulty: share(sum(within, |second| second.at_faulty), attempts),
            attempts_per_call: share(attempts, sum(within, |second| second.calls)),
            median: percentile(500),
            p99: percentile(990),
            p999: percentile(999),
            busiest: good.iter().max().map(|most| *most as f64 / mean),
            back: later.windows(STRETCH).position(has_half),
            after: share(sum(later, |second| second.succeeded), sum(later, |second| second.calls)),
            per_second: seconds,
        }
    }
}

impl Endpoints {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let shown = self.shown(common.seed())?;
        let document = Document { seed: common.seed(), scenes: &shown };
        let figure = || figure::figure(&shown, self.fault.as_secs());
        common.show(out, &document, Some(&figure), |out| print(out, &shown))?;
        Ok(Found::Fine)
    }

    fn shown(&self, seed: u64) -> Result<Vec<Shown>, LabError> {
        let fault = self.fault.as_secs();
        if !(1..=3600).contains(&fault) {
            return Err(LabError::new("--fault must be from 1 s to 1 h"));
        }
        let scenes = or_all(&self.scenes);
        let rules = or_all(&self.rules);
        let seconds = |scene: Scene| [if scene == Scene::Silent { 0 } else { BEFORE }, fault, AFTER];
        let seconds_of = |scene: &Scene| seconds(*scene).iter().sum::<u64>();
        let steps = scenes.iter().map(seconds_of).sum::<u64>() * rules.len() as u64;
        let mut progress = Progress::new(steps);
        let shown = scenes.iter().map(|scene| {
            let servers = match scene {
                Scene::Mixed | Scene::Tiers | Scene::FailingTier => 2,
                scene => scene.servers().len(),
            };
            let rate = self.load * (servers * WORKERS) as f64 / SERVICE;
            let world = World { scene: *scene, rate, seconds: seconds(*scene), seed };
            let figures = |rule: &Which| Figures::of(*rule, &world, simulation::simulate(world, *rule, &mut progress));
            Shown { scene: scene.title(), rules: rules.iter().map(figures).collect() }
        });
        Ok(shown.collect())
    }
}

/// Returns the given values, or all.
fn or_all<T: ValueEnum>(given: &[T]) -> &[T] {
    match given {
        [] => T::value_variants(),
        given => given,
    }
}

fn print(out: &mut dyn Write, shown: &[Shown]) -> Result<(), LabError> {
    let time = |seconds: Option<f64>| seconds.map_or("-".to_owned(), |time| text::duration(text::seconds(time)));
    for (number, Shown { scene, rules }) in shown.iter().enumerate() {
        let columns =
            ["success", "at faulty", "attempts/call", "median", "p99", "p99.9", "busiest", "back", "afterwards"];
        let mut table = text::table([*scene].into_iter().chain(columns));
        for figures in rules {
            table.add_row([
                figures.rule.to_owned(),
                text::percent(figures.success),
                text::percent(figures.at_faulty),
                format!("{:.2}", figures.attempts_per_call),
                time(figures.median),
                time(figures.p99),
                time(figures.p999),
                figures.busiest.map_or("-".to_owned(), |busiest| format!("{busiest:.2} ×")),
                figures.back.map_or("-".to_owned(), |seconds| format!("{seconds} s")),
                text::percent(figures.after),
            ]);
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
