//! `lab contention`: clients that contend for one row, by schedule.
//!
//! Input: the numbers of clients, the network's delay, the schedules' base and cap. Output: for
//! each schedule the calls made and the time to finish, by number of clients.

mod row;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use reattempt::error::ConfigError;
use reattempt::schedule::{Constant, Exponential, SharedSchedule};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::picture::{Axis, Figure, Panel, Series, Shape};
use crate::policy::cap_of;
use crate::progress::Progress;
use crate::text;
use row::{Network, Row};

/// The options of `lab contention`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Contention {
    /// Numbers of clients [default: 1, 10, 20, … 200]
    #[arg(long, value_delimiter = ',', value_name = "NUMBER,…",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    clients: Vec<u32>,
    /// Number of runs for each case; results are means
    #[arg(long, default_value_t = 20, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=10_000))]
    runs: u32,
    /// Base delay of the schedules
    #[arg(long, default_value = "5ms", value_parser = humantime::parse_duration, value_name = "TIME")]
    base: Duration,
    /// Cap of the schedules
    #[arg(long, default_value = "2s", value_parser = humantime::parse_duration, value_name = "TIME")]
    cap: Duration,
    /// Mean one-way network delay
    #[arg(long, default_value = "10ms", value_parser = humantime::parse_duration, value_name = "TIME")]
    delay: Duration,
    /// Standard deviation of the network delay
    #[arg(long, default_value = "2ms", value_parser = humantime::parse_duration, value_name = "TIME")]
    deviation: Duration,
}

/// The means of all runs of a schedule, by number of clients.
#[derive(Debug, Serialize)]
struct Course {
    schedule: &'static str,
    points: Vec<Point>,
}

#[derive(Debug, Serialize, Clone, Copy, PartialEq)]
struct Point {
    clients: u32,
    /// The tries of all clients; each is a read and a write.
    calls: f64,
    /// The time until the last client has its answer.
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    runs: u32,
    courses: &'a [Course],
}

impl Contention {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let courses = self.courses(common.seed())?;
        let document = Document { seed: common.seed(), runs: self.runs, courses: &courses };
        common.show(out, &document, Some(&|| figure(&courses)), |out| {
            let runs = if self.runs == 1 { "run" } else { "runs" };
            writeln!(out, "Calls (a read and a write), mean of {} {runs}\n", self.runs)?;
            print(out, &courses, |point| format!("{:.1}", point.calls))?;
            writeln!(out, "\nTime until the last client has written\n")?;
            let time = |point: &Point| text::duration(text::seconds(point.seconds));
            print(out, &courses, time)
        })?;
        Ok(Found::Fine)
    }

    fn courses(&self, seed: u64) -> Result<Vec<Course>, LabError> {
        let network = Network::new(self.delay, self.deviation)?;
        let usual: Vec<u32> = std::iter::once(1).chain((10..=200).step_by(10)).collect();
        let counts = if self.clients.is_empty() { &usual } else { &self.clients };
        let schedules = schedules(self.base, self.cap)?;
        let steps = schedules.len() * counts.len();
        let mut progress = Progress::new(steps as u64 * u64::from(self.runs));
        let mut mean = |schedule: &SharedSchedule, clients| {
            let (mut calls, mut seconds) = (0.0, 0.0);
            for run in 0..self.runs {
                let end = Row::new(schedule, network, clients, seed, run).run();
                calls += end.calls as f64;
                seconds += Duration::from_nanos(end.at).as_secs_f64();
                progress.step();
            }
            let runs = f64::from(self.runs);
            Point { clients, calls: calls / runs, seconds: seconds / runs }
        };
        let courses = schedules.into_iter().map(|(name, schedule)| Course {
            schedule: name,
            points: counts.iter().map(|clients| mean(&schedule, *clients)).collect(),
        });
        Ok(courses.collect())
    }
}

/// Returns the schedules that are compared, with their names.
fn schedules(base: Duration, cap: Duration) -> Result<[(&'static str, SharedSchedule); 5], ConfigError> {
    let cap = cap_of(base, cap)?;
    let shared = |exponential: Exponential| SharedSchedule::new(exponential.max_delay(cap));
    Ok([
        ("none", SharedSchedule::new(Constant::immediate())),
        ("exponential", shared(Exponential::no_jitter(base))),
        ("equal", shared(Exponential::equal_jitter(base))),
        ("full", shared(Exponential::full_jitter(base))),
        ("decorrelated", SharedSchedule::new(Exponential::decorrelated(base).max_delay(cap))),
    ])
}

/// Prints a table with a row for each number of clients and a column for each schedule.
fn print(out: &mut dyn Write, courses: &[Course], cell: impl Fn(&Point) -> String) -> Result<(), LabError> {
    let mut table = text::table(std::iter::once("clients").chain(courses.iter().map(|course| course.schedule)));
    let counts = courses.first().map_or(&[][..], |course| &course.points);
    for (row, point) in counts.iter().enumerate() {
        let cells = courses.iter().filter_map(|course| course.points.get(row)).map(&cell);
        table.add_row(std::iter::once(point.clients.to_string()).chain(cells));
    }
    text::print_table(out, &table)
}

fn figure(courses: &[Course]) -> Figure {
    let panel = |title: &str, y: Axis, value: fn(&Point) -> f64| Panel {
        title: title.to_owned(),
        x: Axis::whole("clients", 0.0, 1.0),
        y,
        series: courses
            .iter()
            .enumerate()
            .map(|(color, course)| Series {
                name: course.schedule.to_owned(),
                color,
                shape: Shape::Line(
                    course.points.iter().map(|point| (f64::from(point.clients), value(point))).collect(),
                ),
            })
            .collect(),
    };
    Figure {
        title: "Clients that contend for one row".to_owned(),
        panels: vec![
            panel("Calls made", Axis::from_zero("calls"), |point| point.calls),
            panel("Time until all have written", Axis::logarithmic("time, s"), |point| point.seconds),
        ],
        columns: 2,
    }
}

#[cfg(test)]
mod tests;
