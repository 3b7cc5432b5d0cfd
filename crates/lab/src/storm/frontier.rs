//! `lab frontier`: the load that each budget allows in an outage, and the calls that it saves.
//!
//! Each budget is a point, and the strengths of one kind are a line. One axis has the peak load during
//! a stall, the other the share of calls that succeed while a part of the attempts fails. The best
//! budget is at the top on the left.

use std::io::Write;

use clap::Args;
use reattempt::RetryBudget;
use serde::Serialize;

use super::curves::{Curves, SECOND};
use super::parallel;
use super::policy::Policy;
use super::server::{Fault, ServerSettings};
use super::simulation::Scene;
use crate::common::Common;
use crate::error::{Found, LabError};
use crate::picture::{Axis, Figure, Panel, Series, Shape};
use crate::text;

/// The options of `lab frontier`.
#[derive(Debug, Args)]
pub(crate) struct Frontier {
    /// Number of clients, each with one call per second
    #[arg(long, default_value_t = 1000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    clients: u32,
}

/// The share of the attempts that fail in the second scene.
const FAILING: f64 = 0.3;

/// A budget's place in the picture.
#[derive(Debug, Serialize)]
struct Point {
    kind: String,
    budget: String,
    /// The most attempts in a second, as a multiple of the calls.
    peak: f64,
    /// The share of the calls that succeed, in the second half.
    success: f64,
}

impl Frontier {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let points = self.points(common.seed())?;
        common.show(out, &points, Some(&|| figure(&points)), |out| print(out, &points))?;
        Ok(Found::Fine)
    }

    fn points(&self, seed: u64) -> Result<Vec<Point>, LabError> {
        let policies = policies();
        let mut storms = Vec::new();
        for (_, policy) in &policies {
            storms.push((self.stall(seed), policy.clone()));
            storms.push((self.failing(seed), policy.clone()));
        }
        let curves = parallel::run(&storms);
        let point = |((kind, policy), curves): ((&str, Policy), &[Curves])| Point {
            kind: kind.to_owned(),
            budget: policy.name,
            peak: curves[0].attempts.iter().copied().max().unwrap_or(0) as f64 / f64::from(self.clients),
            success: curves[1].success(60..120),
        };
        Ok(policies.into_iter().zip(curves.chunks(2)).map(point).collect())
    }

    /// Returns a server with half as much capacity again, which answers nothing from 10 to 20 s.
    fn stall(&self, seed: u64) -> Scene {
        let workers = u64::from(self.clients) * 15 / 1000;
        Scene {
            clients: self.clients,
            rate: 1.0,
            duration: 40 * SECOND,
            end: 70 * SECOND,
            timeout: SECOND,
            network: 1,
            server: ServerSettings {
                workers: workers.max(1),
                service: 10,
                queue: usize::try_from(workers * 200).unwrap_or(usize::MAX),
                fault: Fault::Stall,
                faulty: 10 * SECOND..20 * SECOND,
                burst: None,
                refusal_cost: 0.0,
            },
            drop_every: None,
            restart_every: None,
            seed,
        }
    }

    /// Returns a server with unlimited capacity that refuses a random share.
    fn failing(&self, seed: u64) -> Scene {
        let mut scene = self.stall(seed);
        (scene.duration, scene.end) = (120 * SECOND, 150 * SECOND);
        scene.server.workers = u64::MAX;
        scene.server.fault = Fault::Refuse(FAILING);
        scene.server.faulty = 0..u64::MAX;
        scene
    }
}

/// Returns the budgets by kind, each kind from its most cautious to its most generous strength.
fn policies() -> Vec<(&'static str, Policy)> {
    let mut policies = Vec::new();
    let mut add = |kind, name: String, budget| policies.push((kind, Policy::of_bucket(&name, budget)));
    for capacity in [3.0, 10.0, 30.0] {
        let budget = RetryBudget::cautious().capacity(capacity);
        add("cautious", format!("cautious, {capacity} tokens"), budget);
    }
    for percent in [5, 10, 20, 50, 100] {
        add("ratio, 10 tokens", format!("ratio {percent} %"), RetryBudget::percent(percent));
    }
    for percent in [5, 10, 20, 50, 100] {
        let budget = RetryBudget::percent(percent).capacity(1.0);
        add("ratio, 1 token", format!("ratio {percent} %, 1 token"), budget);
    }
    for capacity in [20.0, 50.0, 100.0, 500.0] {
        let budget = RetryBudget::aws_quota().capacity(capacity);
        add("AWS quota", format!("AWS quota of {capacity}"), budget);
    }
    add("no budget", "none".to_owned(), RetryBudget::unlimited());
    policies.push(("gRPC throttle", Policy::of_throttle("gRPC throttle")));
    policies
}

fn print(out: &mut dyn Write, points: &[Point]) -> Result<(), LabError> {
    let mut table = text::table(["budget", "peak in a stall", "success at 30 % failing"]);
    for point in points {
        table.add_row([point.budget.clone(), format!("{:.2}", point.peak), format!("{:.1} %", 100.0 * point.success)]);
    }
    text::print_table(out, &table)
}

fn figure(points: &[Point]) -> Figure {
    let kinds = points.chunk_by(|one, other| one.kind == other.kind);
    let series = kinds.enumerate().flat_map(|(color, points)| {
        let places: Vec<_> = points.iter().map(|point| (point.peak, 100.0 * point.success)).collect();
        let of = |name: &str, shape| Series { name: name.to_owned(), color, shape };
        [of("", Shape::Line(places.clone())), of(&points[0].kind, Shape::Points(places))]
    });
    let panel = Panel {
        title: String::new(),
        x: Axis::from_zero("most load in a stall of 10 s, × the normal load"),
        y: Axis { at_least: Some((70.0, 100.0)), ..Axis::from_zero("calls that succeed at 30 % failing, %") },
        series: series.collect(),
    };
    Figure {
        title: "Budgets of quiet clients: harm in an outage, help in a partial failure".to_owned(),
        panels: vec![panel],
        columns: 1,
    }
}
