//! `lab storm`: the effect of retries on an outage.
//!
//! Input: clients, a server of finite capacity, its fault and the duration of that fault. Output,
//! for each policy: load, goodput, amplification, time to recover, and curves over time.
//! [`budgets`] uses the same simulation to compare budgets at rates of failure.

mod budgets;
mod capacity;
mod client;
mod curves;
mod figure;
mod fleet;
mod frontier;
mod parallel;
mod policy;
mod replay;
mod server;
mod settings;
mod simulation;
mod tick;

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::text;
use crate::values::{cost, length, load, positive, share};
pub(crate) use budgets::Budgets;
pub(crate) use capacity::Capacity;
use curves::{Curves, Figures};
use fleet::StoreCounts;
pub(crate) use frontier::Frontier;
pub(crate) use policy::{Choice, ClientBudget, Policy, chosen, parse};
pub(crate) use replay::Replay;

/// The options of `lab storm`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_long_help = policy::HELP)]
pub(crate) struct Storm {
    /// Policies to compare: none, naive, unlimited, ours, for-rate, grpc-throttle, aws-quota, ratio, fleet, former, and
    /// policies as for `lab plan`, such as standard:budget.capacity=2; guards follow a plus, such as ours+breaker
    /// [default: the first eight]
    #[arg(value_name = "POLICY", value_parser = policy::parse)]
    policies: Vec<Choice>,
    /// A TOML file with a table for each policy; `guards` is a list of words
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Number of clients, each with its own budget
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    clients: u32,
    /// Calls per second for each client, at random times
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = positive)]
    rate: f64,
    /// Duration of the load
    #[arg(long, default_value = "5min", value_name = "TIME", value_parser = length)]
    duration: Duration,
    /// Start of the fault
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = length)]
    at: Duration,
    /// Duration of the fault
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = length)]
    outage: Duration,
    /// Kind of fault
    #[arg(long, default_value = "stall")]
    fault: FaultKind,
    /// With `--fault slow`: slowdown factor [default: 10]
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slowdown: Option<u32>,
    /// With `--fault refuse` or `lose`: failure rate [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    failure_rate: Option<f64>,
    /// With `--fault refuse` or `lose`: failures come in bursts of this mean length, during which every request fails
    #[arg(long, value_name = "TIME", value_parser = length)]
    burst: Option<Duration>,
    /// Cost of a refusal, as a fraction of the cost of a response
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = cost)]
    refusal_cost: f64,
    /// Mean time between connection losses of a client; a loss fails all its attempts in flight
    #[arg(long, value_name = "TIME", value_parser = length)]
    drop_every: Option<Duration>,
    /// Interval at which all clients restart: each has a new budget then. Its guards keep their state
    #[arg(long, value_name = "TIME", value_parser = length)]
    restart_every: Option<Duration>,
    /// Load without retries, as a fraction of the server's capacity. The actual load is printed; it may be lower,
    /// because the number of workers is whole
    #[arg(long, default_value_t = 0.7, value_name = "SHARE", value_parser = load)]
    load: f64,
    /// Requests per second that the server can answer, instead of a load. The actual capacity is printed; it may be
    /// higher, because the number of workers is whole
    #[arg(long, value_name = "NUMBER", value_parser = positive, conflicts_with = "load")]
    capacity: Option<f64>,
    /// Service time of a request
    #[arg(long, default_value = "10ms", value_name = "TIME", value_parser = length)]
    service: Duration,
    /// Length of the full queue, in processing time; further requests are refused
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = length)]
    queue: Duration,
    /// Client timeout, unless the policy sets another
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = length)]
    timeout: Duration,
    /// One-way message delay
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = length)]
    network: Duration,
    #[command(flatten)]
    store: StoreOptions,
}

/// The store of the policy `fleet`.
#[derive(Debug, Args)]
struct StoreOptions {
    /// With `fleet`: the time from a question to the store's answer
    #[arg(long, default_value = "2ms", value_name = "TIME", value_parser = length)]
    store_round_trip: Duration,
    /// With `fleet`: the longest time for which an outcome is held for the answer
    #[arg(long, default_value = "50ms", value_name = "TIME", value_parser = length)]
    patience: Duration,
    /// With `fleet`: the start of an outage of the store
    #[arg(long, default_value = "65s", value_name = "TIME", value_parser = length)]
    store_down_at: Duration,
    /// With `fleet`: the duration of that outage
    #[arg(long, value_name = "TIME", value_parser = length)]
    store_outage: Option<Duration>,
    /// With `fleet`: the store has lost its data when it returns
    #[arg(long, requires = "store_outage")]
    store_loses_data: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FaultKind {
    /// Requests are queued, and not answered until the fault ends
    Stall,
    /// Requests take longer
    Slow,
    /// Requests are refused at once
    Refuse,
    /// Requests are never answered
    Lose,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    /// Calls a second, on average.
    normal_load: f64,
    /// The requests that the server can answer in a second.
    capacity: f64,
    /// The normal load divided by the capacity, which has a whole number of workers.
    true_load: f64,
    outage: Range<f64>,
    storms: &'a [Course],
}

/// The result of a policy.
#[derive(Debug, Serialize)]
struct Course {
    policy: String,
    /// `true` if guards may refuse its attempts.
    #[serde(skip)]
    guarded: bool,
    #[serde(flatten)]
    figures: Figures,
    per_second: Curves,
}

impl Storm {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let scene = self.scene(common.seed())?;
        let mut policies = policy::chosen(&self.policies, self.file.as_deref(), self.rate)?;
        if policies.is_empty() {
            policies = Policy::all(self.rate);
        }
        let store = self.store_settings();
        let storms = policies.into_iter().map(|policy| (scene.clone(), policy.with_store(&store)));
        let storms: Vec<_> = storms.collect();
        let curves = parallel::run(&storms);
        let (before, after) = self.spans(&scene);
        let courses: Vec<_> = storms
            .into_iter()
            .zip(curves)
            .map(|((_, Policy { name, guards, .. }), curves)| Course {
                policy: name,
                guarded: !guards.is_empty(),
                figures: curves.figures(before.clone(), after.clone()),
                per_second: curves,
            })
            .collect();
        let normal_load = f64::from(self.clients) * self.rate;
        let capacity = scene.server.workers as f64 / seconds(scene.server.service);
        let Range { start, end } = scene.server.faulty;
        let outage = seconds(start)..seconds(end);
        let document = Document {
            seed: common.seed(),
            normal_load,
            capacity,
            true_load: normal_load / capacity,
            outage: outage.clone(),
            storms: &courses,
        };
        let title = "An outage, and what retries make of it";
        let draw = || figure::figure(title, "× the normal load", &courses, normal_load, &outage);
        common.show(out, &document, Some(&draw), |out| {
            self.print(out, &courses, &[normal_load, capacity], after.len())
        })?;
        Ok(Found::Fine)
    }

    fn print(
        &self,
        out: &mut dyn Write,
        courses: &[Course],
        [normal_load, capacity]: &[f64; 2],
        looked_at: usize,
    ) -> Result<(), LabError> {
        writeln!(
            out,
            "{} clients, {normal_load:.0} calls a second; the server can do {capacity:.0} (a load of \
             {}), and for {} it {}\n",
            self.clients,
            text::percent(normal_load / capacity),
            text::brief(self.outage),
            match self.fault {
                FaultKind::Stall => "answers nothing".to_owned(),
                FaultKind::Slow => format!("takes {} times as long", self.slowdown()),
                FaultKind::Refuse => format!("refuses {}", text::percent(self.failure_rate())),
                FaultKind::Lose => {
                    format!("never answers {}", text::percent(self.failure_rate()))
                }
            }
        )?;
        // A policy without guards refuses nothing.
        let guarded = courses.iter().any(|course| course.guarded);
        let refused = guarded.then_some("refused calls");
        let left = ["policy", "load", "peak", "goodput", "lost calls"];
        let header = left.into_iter().chain(refused).chain(["attempts/call", "recovery"]);
        let mut table = text::table(header);
        let seconds = self.duration.as_secs_f64();
        for Course { policy, figures, .. } in courses {
            let mut row = vec![
                policy.clone(),
                format!("{:.0}/s", figures.attempts as f64 / seconds),
                format!("{}/s", figures.peak_load),
                format!("{:.0}/s", figures.succeeded as f64 / seconds),
                text::percent(figures.lost),
            ];
            row.extend(guarded.then(|| text::percent(figures.refused)));
            row.push(format!("{:.3}", figures.amplification));
            row.push(match figures.recovery_seconds {
                Some(seconds) => format!("{seconds} s"),
                None => format!("none in {looked_at} s: metastable"),
            });
            table.add_row(row);
        }
        text::print_table(out, &table)?;
        for Course { policy, figures, .. } in courses {
            let Some(StoreCounts { questions, granted, reports }) = figures.store else { continue };
            let retries = figures.attempts.saturating_sub(figures.calls);
            let each = (questions + reports) as f64 / retries.max(1) as f64;
            writeln!(
                out,
                "\n{policy}: the store granted {granted} of {questions} questions and had {reports} reports, {each:.1} \
                 messages for each retry"
            )?;
        }
        Ok(())
    }
}

fn seconds(ticks: u64) -> f64 {
    tick::time(ticks).as_secs_f64()
}

#[cfg(test)]
mod tests;
