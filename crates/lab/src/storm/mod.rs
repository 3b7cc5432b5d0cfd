//! `lab storm`: what retries make of an outage.
//!
//! What flows in: clients, a server of finite capacity, what goes wrong with it and for how long.
//! What flows out: offered load, goodput, amplification and time to recover, for each policy, and
//! curves over time. [`budgets`] asks the same engine what each budget does at each rate of failure.

mod budgets;
mod client;
mod curves;
mod policy;
mod server;
mod several;
mod simulation;

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::cli::Common;
use crate::error::{Found, LabError};
use crate::picture::{Axis, Figure, Panel, Series, Shape};
use crate::text;
pub(crate) use budgets::Budgets;
use client::ticks;
use curves::{Curves, Figures, SECOND};
use policy::{Policy, Which};
use server::{Fault, ServerSettings};
use simulation::Scene;

/// An outage: clients of one server that has so many workers and a queue before them. Something goes
/// wrong with it for a while. It does the work for every request that it has taken in, whether or not
/// its client still waits: so what is retried while the queue is long can keep it long for ever.
#[derive(Debug, Args)]
pub(crate) struct Storm {
    /// Policies to compare [default: all]
    #[arg(long, value_delimiter = ',', value_name = "POLICY,…")]
    policies: Vec<Which>,
    /// How many clients there are, each with a budget of its own
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    clients: u32,
    /// Calls a second of each client, at random moments
    #[arg(long, default_value_t = 1.0, value_name = "NUMBER", value_parser = positive)]
    rate: f64,
    /// How long calls are made
    #[arg(long, default_value = "5min", value_parser = humantime::parse_duration)]
    duration: Duration,
    /// When it goes wrong
    #[arg(long, default_value = "60s", value_parser = humantime::parse_duration)]
    at: Duration,
    /// For how long
    #[arg(long, default_value = "10s", value_parser = humantime::parse_duration)]
    outage: Duration,
    /// What goes wrong
    #[arg(long, default_value = "stall")]
    fault: FaultKind,
    /// With `--fault slow`: a request takes this many times as long
    #[arg(long, default_value_t = 10, value_name = "FACTOR")]
    slowdown: u32,
    /// With `--fault refuse`: the share of the requests that is refused
    #[arg(long, default_value_t = 1.0, value_name = "SHARE", value_parser = share)]
    failure_rate: f64,
    /// The load without retries, as a share of what the server can do
    #[arg(long, default_value_t = 0.7, value_name = "SHARE", value_parser = positive)]
    load: f64,
    /// How long a worker of the server takes for a request
    #[arg(long, default_value = "10ms", value_parser = humantime::parse_duration)]
    service: Duration,
    /// How long the server takes to work off a full queue; further requests are refused
    #[arg(long, default_value = "2s", value_parser = humantime::parse_duration)]
    queue: Duration,
    /// How long a client waits for the answer to an attempt
    #[arg(long, default_value = "1s", value_parser = humantime::parse_duration)]
    timeout: Duration,
    /// How long a message takes, one way
    #[arg(long, default_value = "1ms", value_parser = humantime::parse_duration)]
    network: Duration,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FaultKind {
    /// Requests are taken in, and none is answered until it is over
    Stall,
    /// Requests take longer
    Slow,
    /// Requests are refused at once
    Refuse,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    /// Calls a second, on average.
    normal_load: f64,
    /// What the server can do in a second.
    capacity: f64,
    outage: Range<f64>,
    storms: &'a [Course],
}

/// What came of a policy.
#[derive(Debug, Serialize)]
struct Course {
    policy: &'static str,
    #[serde(flatten)]
    figures: Figures,
    per_second: Curves,
}

impl Storm {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let scene = self.scene(common.seed())?;
        let policies =
            if self.policies.is_empty() { Which::value_variants() } else { &self.policies };
        let storm = |which: &Which| Ok((scene.clone(), Policy::of_storm(*which, self.rate)?));
        let storms = policies.iter().map(storm).collect::<Result<Vec<_>, LabError>>()?;
        let curves = several::run(&storms);
        let after = self.after(&scene);
        let courses: Vec<_> = storms
            .iter()
            .zip(curves)
            .map(|((_, policy), curves)| Course {
                policy: policy.name,
                figures: curves.figures(after.clone()),
                per_second: curves,
            })
            .collect();
        let normal_load = f64::from(self.clients) * self.rate;
        let capacity = scene.server.workers as f64 / seconds(scene.server.service);
        if common.json {
            let Range { start, end } = scene.server.faulty;
            let outage = seconds(start)..seconds(end);
            let document =
                Document { seed: common.seed(), normal_load, capacity, outage, storms: &courses };
            text::json(out, &document)?;
        } else {
            self.print(out, &courses, normal_load, capacity)?;
        }
        common.draw(|| figure(&courses, normal_load))?;
        Ok(Found::Fine)
    }

    fn scene(&self, seed: u64) -> Result<Scene, LabError> {
        for (name, duration) in [
            ("--network", self.network),
            ("--service", self.service),
            ("--timeout", self.timeout),
            ("--outage", self.outage),
        ] {
            if duration.is_zero() {
                return Err(LabError::new(format!("{name} must be longer than 0 s")));
            }
        }
        let rest = self.duration.saturating_sub(self.at.saturating_add(self.outage));
        if rest < self.settling() * 2 {
            let least = text::duration(self.settling() * 2);
            return Err(LabError::new(format!(
                "--duration must reach {least} beyond the outage, to see what comes of it"
            )));
        }
        let service = ticks(self.service);
        let workers = f64::from(self.clients) * self.rate * seconds(service) / self.load;
        let workers = whole(workers).max(1);
        let queue = workers.saturating_mul(ticks(self.queue)) / service;
        let fault = match self.fault {
            FaultKind::Stall => Fault::Stall,
            FaultKind::Slow => Fault::Slow(self.slowdown),
            FaultKind::Refuse => Fault::Refuse(self.failure_rate),
        };
        let start = ticks(self.at);
        let faulty = start..start.saturating_add(ticks(self.outage));
        let queue = usize::try_from(queue).unwrap_or(usize::MAX);
        Ok(Scene {
            clients: self.clients,
            rate: self.rate,
            duration: ticks(self.duration),
            timeout: ticks(self.timeout),
            network: ticks(self.network),
            server: ServerSettings { workers, service, queue, fault, faulty },
            seed,
        })
    }

    /// In this time before the last call, what became of a call may be due to the calm after it.
    fn settling(&self) -> Duration {
        self.timeout.saturating_mul(10)
    }

    /// The seconds in which the service should be well again.
    fn after(&self, scene: &Scene) -> Range<usize> {
        let second = |ticks: u64| usize::try_from(ticks / SECOND).unwrap_or(usize::MAX);
        let end = scene.duration.saturating_sub(ticks(self.settling()));
        second(scene.server.faulty.end.next_multiple_of(SECOND))..second(end)
    }

    fn print(
        &self,
        out: &mut dyn Write,
        courses: &[Course],
        normal_load: f64,
        capacity: f64,
    ) -> Result<(), LabError> {
        writeln!(
            out,
            "{} clients, {normal_load:.0} calls a second; the server can do {capacity:.0}, and for \
             {} it {}\n",
            self.clients,
            text::duration(self.outage),
            match self.fault {
                FaultKind::Stall => "answers nothing".to_owned(),
                FaultKind::Slow => format!("takes {} times as long", self.slowdown),
                FaultKind::Refuse => format!("refuses {:.0} %", 100.0 * self.failure_rate),
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
                (*policy).to_owned(),
                format!("{:.0}/s", figures.attempts as f64 / seconds),
                format!("{}/s", figures.peak_load),
                format!("{:.0}/s", figures.succeeded as f64 / seconds),
                format!("{:.1} %", 100.0 * (1.0 - figures.succeeded as f64 / figures.calls as f64)),
                format!("{:.3}", figures.amplification),
                match figures.recovery_seconds {
                    Some(seconds) => format!("{seconds} s"),
                    None => "never: metastable".to_owned(),
                },
            ]);
        }
        text::print_table(out, &table)
    }
}

/// A panel for each policy: what is offered to the server, and what comes of it.
fn figure(courses: &[Course], normal_load: f64) -> Figure {
    let highest = courses.iter().map(|course| course.figures.peak_load).max().unwrap_or(0);
    let panel = |(number, course): (usize, &Course)| {
        let curves = &course.per_second;
        let series = |color, name: &str, counts: &[u64]| {
            // What comes after the last call is no part of the picture.
            let counts = (0_u32..).zip(counts.iter().take(curves.calls.len()));
            let share = |count: u64| count as f64 / normal_load;
            let points = counts.map(|(second, count)| (f64::from(second), share(*count)));
            // One legend is enough.
            let name = if number == 0 { name.to_owned() } else { String::new() };
            Series { name, color, shape: Shape::Line(points.collect()) }
        };
        Panel {
            title: course.policy.to_owned(),
            x: Axis::from_zero("time, s"),
            y: Axis {
                at_least: Some((0.0, highest as f64 / normal_load)),
                ..Axis::from_zero("of the normal load")
            },
            series: vec![
                series(1, "attempts sent", &curves.attempts),
                series(0, "calls that succeed", &curves.goodput),
            ],
        }
    };
    Figure {
        title: "An outage, and what retries make of it".to_owned(),
        panels: courses.iter().enumerate().map(panel).collect(),
        columns: if courses.len() > 4 { 3 } else { 2 },
    }
}

fn seconds(ticks: u64) -> f64 {
    client::time(ticks).as_secs_f64()
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

/// A number above zero on the command line.
fn positive(text: &str) -> Result<f64, String> {
    number(text, |number| number > 0.0 && number <= 1e6, "must be above 0 and at most 1000000")
}

/// A number from 0 to 1 on the command line.
fn share(text: &str) -> Result<f64, String> {
    number(text, |number| (0.0..=1.0).contains(&number), "must be from 0 to 1")
}

fn number(text: &str, legal: fn(f64) -> bool, rule: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if legal(number) => Ok(number),
        Ok(_) => Err(rule.to_owned()),
        Err(_) => Err("not a number".to_owned()),
    }
}

#[cfg(test)]
mod tests;
