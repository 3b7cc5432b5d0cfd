//! `lab budgets`: the effect of each budget at each rate of failure.
//!
//! Input: a number of calls a second, rates of failure. Output: the load on the server, at first
//! and later, and the share of calls that succeed. One client makes all of the calls, or many
//! clients make one call a second each. Schedule and limits are the defaults, so only the
//! budgets differ.

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::curves::{Curves, SECOND};
use super::parallel;
use super::policy::{self, Choice, Policy};
use super::server::{Fault, ServerSettings};
use super::simulation::Scene;
use super::tick::ticks;
use crate::common::Common;
use crate::error::{Found, LabError};
use crate::picture::{Axis, Figure, Panel, Series, Shape};
use crate::text;
use crate::values::{length, share};

/// The options of `lab budgets`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_long_help = policy::HELP)]
pub(crate) struct Budgets {
    /// Additional policies to compare with the budgets, named as for `lab storm`
    #[arg(value_name = "POLICY", value_parser = policy::parse)]
    pub(super) policies: Vec<Choice>,
    /// A TOML file with a table for each policy
    #[arg(long, short, value_name = "FILE")]
    pub(super) file: Option<PathBuf>,
    /// Failure rates
    #[arg(long, value_delimiter = ',', value_name = "SHARE,…", value_parser = share,
          default_values_t = [0.1, 0.3, 0.5, 1.0])]
    pub(super) failure_rates: Vec<f64>,
    /// Failures come in bursts of this mean length, during which every request fails
    #[arg(long, value_name = "TIME", value_parser = length)]
    pub(super) burst: Option<Duration>,
    /// Total calls per second
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) calls: u32,
    /// Duration of the load; `later` is its second half
    #[arg(long, default_value = "2min", value_name = "TIME", value_parser = length)]
    pub(super) duration: Duration,
}

/// The seconds of the column `at first`, in which full buckets make a difference.
const AT_FIRST: usize = 10;

/// The clients that make the calls.
#[derive(Debug, Clone, Copy)]
struct Population {
    clients: u32,
    /// Calls a second of each client.
    rate: f64,
}

/// The result of a budget at a rate of failure.
#[derive(Debug, Serialize)]
pub(super) struct Case {
    pub(super) clients: u32,
    pub(super) budget: String,
    pub(super) failure_rate: f64,
    /// Attempts for each call in the first seconds, and in the second half.
    pub(super) load_at_first: f64,
    pub(super) load_later: f64,
    /// The share of the calls that succeed, in the first seconds and in the second half.
    pub(super) success_at_first: f64,
    pub(super) success_later: f64,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    calls_per_second: u32,
    cases: &'a [Case],
}

impl Budgets {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let cases = self.cases(common.seed())?;
        let document = Document { seed: common.seed(), calls_per_second: self.calls, cases: &cases };
        common.show(out, &document, Some(&|| self.figure(&cases)), |out| self.print(out, &cases))?;
        Ok(Found::Fine)
    }

    pub(super) fn cases(&self, seed: u64) -> Result<Vec<Case>, LabError> {
        let seconds = usize::try_from(self.duration.as_secs()).unwrap_or(usize::MAX);
        if seconds < 2 * AT_FIRST {
            return Err(LabError::new(format!("--duration must be at least {} s", 2 * AT_FIRST)));
        }
        if self.burst.is_some_and(|burst| burst.is_zero()) {
            return Err(LabError::new("--burst must be longer than 0 s"));
        }
        if f64::from(self.calls) * self.duration.as_secs_f64() > super::settings::MOST_CALLS {
            return Err(LabError::new(super::settings::TOO_MANY));
        }
        let (mut names, mut storms) = (Vec::new(), Vec::new());
        for population in self.populations() {
            let further = policy::chosen(&self.policies, self.file.as_deref(), population.rate)?;
            for policy in Policy::of_budgets(population.rate).into_iter().chain(further) {
                for failure_rate in &self.failure_rates {
                    names.push((population.clients, policy.name.clone(), *failure_rate));
                    storms.push((self.scene(population, *failure_rate, seed), policy.clone()));
                }
            }
        }
        let (first, later) = (0..AT_FIRST, seconds / 2..seconds);
        let case = |((clients, budget, failure_rate), curves): (_, Curves)| Case {
            clients,
            budget,
            failure_rate,
            load_at_first: curves.amplification(first.clone()),
            load_later: curves.amplification(later.clone()),
            success_at_first: curves.success(first.clone()),
            success_later: curves.success(later.clone()),
        };
        Ok(names.into_iter().zip(parallel::run(&storms)).map(case).collect())
    }

    /// Returns the two populations: one busy client, and many quiet ones.
    fn populations(&self) -> [Population; 2] {
        let busy = Population { clients: 1, rate: f64::from(self.calls) };
        [busy, Population { clients: self.calls, rate: 1.0 }]
    }

    fn scene(&self, population: Population, failure_rate: f64, seed: u64) -> Scene {
        let faulty = Range { start: 0, end: u64::MAX };
        let fault = Fault::Refuse(failure_rate);
        let duration = ticks(Duration::from_secs(self.duration.as_secs()));
        Scene {
            clients: population.clients,
            rate: population.rate,
            duration,
            // The last calls have time for their retries.
            end: duration + 30 * SECOND,
            timeout: SECOND,
            network: 1,
            server: ServerSettings {
                workers: u64::MAX,
                service: 10,
                queue: 0,
                fault,
                faulty,
                burst: self.burst.map(ticks),
                refusal_cost: 0.0,
            },
            drop_every: None,
            restart_every: None,
            seed,
        }
    }

    fn print(&self, out: &mut dyn Write, cases: &[Case]) -> Result<(), LabError> {
        for ((number, cases), population) in cases.chunks(cases.len() / 2).enumerate().zip(self.population_texts()) {
            let line = if number > 0 { "\n" } else { "" };
            writeln!(out, "{line}{population}: attempts for each call, in the first 10 s and later\n")?;
            self.table(out, cases, |case| format!("{:.2}  {:.3}", case.load_at_first, case.load_later))?;
            writeln!(out, "\nCalls that succeed, likewise\n")?;
            self.table(out, cases, |case| {
                let [first, later] = [case.success_at_first, case.success_later];
                format!("{:.1}  {:.1} %", 100.0 * first, 100.0 * later)
            })?;
        }
        Ok(())
    }

    /// Describes the two populations.
    fn population_texts(&self) -> [String; 2] {
        let (calls, clients) = (self.calls, if self.calls == 1 { "client" } else { "clients" });
        [format!("One client of {calls} calls a second"), format!("{calls} {clients} of one call a second each")]
    }

    /// Prints a row for each budget and a column for each rate of failure.
    fn table(&self, out: &mut dyn Write, cases: &[Case], cell: fn(&Case) -> String) -> Result<(), LabError> {
        let rates: Vec<_> = self.failure_rates.iter().map(|rate| format!("{} fail", text::percent(*rate))).collect();
        let mut table = text::table(std::iter::once("budget").chain(rates.iter().map(|r| &**r)));
        for (budget, cases) in self.of_budgets(cases) {
            table.add_row(std::iter::once(budget.to_owned()).chain(cases.iter().map(cell)));
        }
        text::print_table(out, &table)
    }

    /// Returns the cases of each budget, by rate of failure.
    fn of_budgets<'a>(&self, cases: &'a [Case]) -> impl Iterator<Item = (&'a str, &'a [Case])> {
        let budgets = cases.chunks(self.failure_rates.len());
        budgets.map(|cases| (cases.first().map_or("", |case| &*case.budget), cases))
    }

    /// Draws the long-run load and success of each budget against the rate of failure.
    fn figure(&self, cases: &[Case]) -> Figure {
        // Both populations share one scale.
        let highest = |value: fn(&Case) -> f64| cases.iter().map(value).fold(0.0, f64::max);
        let panel = |who: &str, cases: &[Case], label: &str, value: fn(&Case) -> f64| Panel {
            title: who.to_owned(),
            x: Axis::from_zero("requests that fail, %"),
            y: Axis { at_least: Some((0.0, highest(value))), ..Axis::from_zero(label) },
            series: self
                .of_budgets(cases)
                .enumerate()
                .map(|(color, (budget, cases))| {
                    let mut points: Vec<_> =
                        cases.iter().map(|case| (100.0 * case.failure_rate, value(case))).collect();
                    points.sort_by(|one, other| one.0.total_cmp(&other.0));
                    Series { name: budget.to_owned(), color, shape: Shape::Line(points) }
                })
                .collect(),
        };
        let of_clients: Vec<_> = cases.chunks(cases.len() / 2).zip(self.population_texts()).collect();
        let loads =
            of_clients.iter().map(|(cases, who)| panel(who, cases, "attempts for each call", |case| case.load_later));
        let successes = of_clients
            .iter()
            .map(|(cases, who)| panel(who, cases, "calls that succeed, %", |case| 100.0 * case.success_later));
        Figure {
            title: "Load and success by retry budget, in the long run".to_owned(),
            panels: loads.chain(successes).collect(),
            columns: 2,
        }
    }
}
