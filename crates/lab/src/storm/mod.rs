//! `lab storm`: what retries make of an outage.
//!
//! What flows in: clients, a server of finite capacity, what goes wrong with it and for how long.
//! What flows out: offered load, goodput, amplification and time to recover, for each policy, and
//! curves over time. [`budgets`] asks the same engine what each budget does at each rate of failure.

mod budgets;
mod client;
mod curves;
mod figure;
mod frontier;
mod policy;
mod server;
mod settings;
mod several;
mod simulation;

use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::text;
pub(crate) use budgets::Budgets;
use curves::{Curves, Figures};
pub(crate) use frontier::Frontier;
use policy::{Choice, Policy};
use settings::{length, positive, share};

/// An outage: clients of one server that has so many workers and a queue before them. Something goes
/// wrong with it for a while. It does the work for every request that it has taken in, whether or not
/// its client still waits: so what is retried while the queue is long can keep it long for ever.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true, after_long_help = policy::HELP)]
pub(crate) struct Storm {
    /// What is compared: none, naive, unlimited, ours, for-rate, grpc-throttle, aws-quota, ratio, and
    /// policies as of `lab plan`, such as standard:budget.capacity=2 [default: the first eight]
    #[arg(value_name = "POLICY", value_parser = policy::parse)]
    policies: Vec<Choice>,
    /// A TOML file with a table for each policy
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// How many clients there are, each with a budget of its own
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    clients: u32,
    /// Calls a second of each client, at random moments
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = positive)]
    rate: f64,
    /// How long calls are made
    #[arg(long, default_value = "5min", value_name = "TIME", value_parser = length)]
    duration: Duration,
    /// When it goes wrong
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = length)]
    at: Duration,
    /// For how long
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = length)]
    outage: Duration,
    /// What goes wrong
    #[arg(long, default_value = "stall")]
    fault: FaultKind,
    /// With `--fault slow`: a request takes this many times as long [default: 10]
    #[arg(long, value_name = "FACTOR", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    slowdown: Option<u32>,
    /// With `--fault refuse` or `lose`: the share of the requests that fails [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    failure_rate: Option<f64>,
    /// With `--fault refuse` or `lose`: failures come in bursts of this mean length, in which every
    /// request fails
    #[arg(long, value_name = "TIME", value_parser = length)]
    burst: Option<Duration>,
    /// The work that a refusal is for the server, as a share of that of an answer
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = settings::cost)]
    refusal_cost: f64,
    /// Mean time between two losses of a client's connection, which fail all its attempts under way
    #[arg(long, value_name = "TIME", value_parser = length)]
    drop_every: Option<Duration>,
    /// The load without retries, as a share of what the server can do; its workers are whole, so the true
    /// load may be lower, and is printed
    #[arg(long, default_value_t = 0.7, value_name = "SHARE", value_parser = settings::load)]
    load: f64,
    /// How long a worker of the server takes for a request
    #[arg(long, default_value = "10ms", value_name = "TIME", value_parser = length)]
    service: Duration,
    /// How long the server takes to work off a full queue; further requests are refused
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = length)]
    queue: Duration,
    /// How long a client waits for the answer to an attempt, if its policy does not say
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = length)]
    timeout: Duration,
    /// How long a message takes, one way
    #[arg(long, default_value = "1ms", value_name = "TIME", value_parser = length)]
    network: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FaultKind {
    /// Requests are taken in, and none is answered until it is over
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
    /// What the server can do in a second.
    capacity: f64,
    /// The one over the other: workers are whole.
    true_load: f64,
    outage: Range<f64>,
    storms: &'a [Course],
}

/// What came of a policy.
#[derive(Debug, Serialize)]
struct Course {
    policy: String,
    #[serde(flatten)]
    figures: Figures,
    per_second: Curves,
}

impl Storm {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let scene = self.scene(common.seed())?;
        let mut policies = policy::chosen(&self.policies, self.file.as_deref(), self.rate)?;
        if policies.is_empty() {
            policies = Policy::all(self.rate)?;
        }
        let storms: Vec<_> = policies.into_iter().map(|policy| (scene.clone(), policy)).collect();
        let curves = several::run(&storms);
        let (before, after) = self.spans(&scene);
        let courses: Vec<_> = storms
            .into_iter()
            .zip(curves)
            .map(|((_, Policy { name, .. }), curves)| Course {
                policy: name,
                figures: curves.figures(before.clone(), after.clone()),
                per_second: curves,
            })
            .collect();
        let normal_load = f64::from(self.clients) * self.rate;
        let capacity = scene.server.workers as f64 / seconds(scene.server.service);
        let Range { start, end } = scene.server.faulty;
        let outage = seconds(start)..seconds(end);
        if common.json {
            let (seed, outage) = (common.seed(), outage.clone());
            let document = Document {
                seed,
                normal_load,
                capacity,
                true_load: normal_load / capacity,
                outage,
                storms: &courses,
            };
            text::json(out, &document)?;
        } else {
            let looked_at = after.len();
            self.print(out, &courses, &[normal_load, capacity], looked_at)?;
        }
        common.draw(|| figure::figure(&courses, normal_load, &outage))?;
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
        let mut table = text::table([
            "policy",
            "load",
            "peak",
            "goodput",
            "lost calls",
            "attempts/call",
            "recovery",
        ]);
        let seconds = self.duration.as_secs_f64();
        for Course { policy, figures, .. } in courses {
            table.add_row([
                policy.clone(),
                format!("{:.0}/s", figures.attempts as f64 / seconds),
                format!("{}/s", figures.peak_load),
                format!("{:.0}/s", figures.succeeded as f64 / seconds),
                text::percent(figures.lost),
                format!("{:.3}", figures.amplification),
                match figures.recovery_seconds {
                    Some(seconds) => format!("{seconds} s"),
                    None => format!("none in {looked_at} s: metastable"),
                },
            ]);
        }
        text::print_table(out, &table)
    }
}

fn seconds(ticks: u64) -> f64 {
    client::time(ticks).as_secs_f64()
}

#[cfg(test)]
mod tests;
