//! `lab budgets`: what each budget does at each rate of failure.
//!
//! What flows in: a number of calls a second, rates of failure. What flows out: the load that the
//! server then sees, at first and later, and the share of calls that succeed, for one client that
//! makes all of the calls and for clients of one call a second. The schedule and the limits are our
//! own throughout, so that the budgets alone make the difference.

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::client::ticks;
use super::curves::{Curves, SECOND};
use super::policy::Policy;
use super::server::{Fault, ServerSettings};
use super::simulation::Scene;
use super::{several, share};
use crate::cli::Common;
use crate::error::{Found, LabError};
use crate::text;

/// A server that has time for everything and refuses a share of the requests by chance, from the first
/// one on: the load that it sees and the calls that succeed, under each budget. Once for one client
/// that makes all calls and once for as many clients that make one call a second each.
#[derive(Debug, Args)]
pub(crate) struct Budgets {
    /// Shares of the requests that fail
    #[arg(long, value_delimiter = ',', value_name = "SHARE,…", value_parser = share,
          default_values_t = [0.1, 0.3, 0.5, 1.0])]
    failure_rates: Vec<f64>,
    /// Calls a second of all clients
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    calls: u32,
    /// How long calls are made; `later` is the second half of it
    #[arg(long, default_value = "2min", value_parser = humantime::parse_duration)]
    duration: Duration,
}

/// What counts as `at first`: the seconds in which buckets that were full make a difference.
const AT_FIRST: usize = 10;

/// Who makes the calls.
#[derive(Debug, Clone, Copy)]
struct Population {
    clients: u32,
    /// Calls a second of each client.
    rate: f64,
}

/// What came of a budget at a rate of failure.
#[derive(Debug, Serialize)]
struct Case {
    clients: u32,
    budget: &'static str,
    failure_rate: f64,
    /// Attempts for each call in the first seconds, and in the second half.
    load_at_first: f64,
    load_later: f64,
    /// Calls that succeed, as a share, likewise.
    success_at_first: f64,
    success_later: f64,
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
        if common.json {
            let (seed, calls_per_second) = (common.seed(), self.calls);
            text::json(out, &Document { seed, calls_per_second, cases: &cases })?;
        } else {
            self.print(out, &cases)?;
        }
        Ok(Found::Fine)
    }

    fn cases(&self, seed: u64) -> Result<Vec<Case>, LabError> {
        let seconds = usize::try_from(self.duration.as_secs()).unwrap_or(usize::MAX);
        if seconds < 2 * AT_FIRST {
            return Err(LabError::new(format!("--duration must be at least {} s", 2 * AT_FIRST)));
        }
        let busy = Population { clients: 1, rate: f64::from(self.calls) };
        let quiet = Population { clients: self.calls, rate: 1.0 };
        let (mut names, mut storms) = (Vec::new(), Vec::new());
        for population in [busy, quiet] {
            for policy in Policy::of_budgets(population.rate)? {
                for failure_rate in &self.failure_rates {
                    names.push((population, policy.name, *failure_rate));
                    storms.push((self.scene(population, *failure_rate, seed), policy.clone()));
                }
            }
        }
        let (first, later) = (0..AT_FIRST, seconds / 2..seconds);
        let case = |((population, budget, failure_rate), curves): (_, Curves)| {
            let Population { clients, .. } = population;
            Case {
                clients,
                budget,
                failure_rate,
                load_at_first: curves.amplification(first.clone()),
                load_later: curves.amplification(later.clone()),
                success_at_first: curves.success(first.clone()),
                success_later: curves.success(later.clone()),
            }
        };
        Ok(names.into_iter().zip(several::run(&storms)).map(case).collect())
    }

    fn scene(&self, population: Population, failure_rate: f64, seed: u64) -> Scene {
        let faulty = Range { start: 0, end: u64::MAX };
        let fault = Fault::Refuse(failure_rate);
        Scene {
            clients: population.clients,
            rate: population.rate,
            duration: ticks(Duration::from_secs(self.duration.as_secs())),
            timeout: SECOND,
            network: 1,
            server: ServerSettings { workers: u64::MAX, service: 10, queue: 0, fault, faulty },
            seed,
        }
    }

    fn print(&self, out: &mut dyn Write, cases: &[Case]) -> Result<(), LabError> {
        for cases in cases.chunk_by(|one, next| one.clients == next.clients) {
            writeln!(
                out,
                "{}: attempts for each call, in the first 10 s and later\n",
                self.who(cases)
            )?;
            self.table(out, cases, |case| {
                format!("{:.2}  {:.3}", case.load_at_first, case.load_later)
            })?;
            writeln!(out, "\nCalls that succeed, likewise\n")?;
            self.table(out, cases, |case| {
                let percent = |share| 100.0 * share;
                format!(
                    "{:.1}  {:.1} %",
                    percent(case.success_at_first),
                    percent(case.success_later)
                )
            })?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn who(&self, cases: &[Case]) -> String {
        match cases.first().map_or(1, |case| case.clients) {
            1 => format!("One client of {} calls a second", self.calls),
            clients => format!("{clients} clients of one call a second each"),
        }
    }

    /// A row for each budget and a column for each rate of failure.
    fn table(
        &self,
        out: &mut dyn Write,
        cases: &[Case],
        cell: fn(&Case) -> String,
    ) -> Result<(), LabError> {
        let rates: Vec<_> =
            self.failure_rates.iter().map(|rate| format!("{:.0} % fail", 100.0 * rate)).collect();
        let mut table = text::table(std::iter::once("budget").chain(rates.iter().map(|r| &**r)));
        for cases in cases.chunk_by(|one, next| one.budget == next.budget) {
            let budget = cases.first().map_or("", |case| case.budget);
            table.add_row(std::iter::once(budget.to_owned()).chain(cases.iter().map(cell)));
        }
        text::print_table(out, &table)
    }
}
