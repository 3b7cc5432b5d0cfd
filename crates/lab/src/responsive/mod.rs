//! `lab responsive`: a responsive schedule that adapts to the pace of a service.
//!
//! Input: the settings of a pace, and a service that refuses calls above a rate. A gate requires a gap between calls;
//! the capacity of a table follows its load; a window takes a number of calls in each second. Output: the delay of each
//! call, and whether the service accepted it.

mod figure;
mod service;
mod turns;
mod workers;

use std::io::Write;
use std::time::Duration;

use clap::{Args, ValueEnum};
use reattempt::error::ConfigError;
use reattempt::schedule::Responsive as Pace;
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::text;
use crate::values::{positive, share};
use service::{Gate, Service, Table, Window};
use turns::{Course, Load, Turns};
use workers::{Call, Workers};

/// The options of `lab responsive`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Responsive {
    /// The service to call
    #[arg(long, value_enum, default_value_t = Kind::Gate)]
    service: Kind,
    /// Number of calls [default: 300; table and window: as many as the time allows]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CALLS)))]
    calls: Option<u32>,
    /// Gate only: required gap between calls; a call after a longer gap is accepted [default: 60ms]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    gap: Option<Duration>,
    /// Gate only: number of initial calls that are refused, whatever the gap [default: 15]
    #[arg(long, value_name = "NUMBER")]
    closed: Option<u32>,
    /// Table and window only: capacity in calls per second; for a table, the initial one [default: 50]
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    capacity: Option<u32>,
    /// Table only: maximum capacity in calls per second [default: 400]
    #[arg(long, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    largest: Option<u32>,
    /// Table only: time between changes of the capacity. It rises by a fifth after any refusal, and falls by a fifth if
    /// less than half of it was used [default: 15s]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    adapts: Option<Duration>,
    /// Number of workers, each with its own pace unless --shared or --turns is given [default: 1; table and window: 4]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    workers: Option<u32>,
    /// One pace for all workers
    #[arg(long)]
    shared: bool,
    /// One pace for all workers, which take turns as behind the guard `Pace`: each call is sent one interval after the
    /// previous one
    #[arg(long, conflicts_with = "shared")]
    turns: bool,
    /// With --turns: calls per second at random times, instead of workers that wait for each response
    #[arg(long, value_name = "NUMBER", requires = "turns", conflicts_with_all = ["workers", "apart"],
          value_parser = positive)]
    load: Option<f64>,
    /// With --turns: resolution of the timer [default: 1ms, as in tokio]
    #[arg(long, requires = "turns", value_parser = humantime::parse_duration, value_name = "TIME")]
    timer: Option<Duration>,
    /// Time between the starts of two workers
    #[arg(long, default_value = "1m", value_parser = humantime::parse_duration, value_name = "TIME")]
    apart: Duration,
    /// Duration of the load [default: unlimited; table and window: 5 min]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    stay: Option<Duration>,
    /// Response time of the service [default: 0 s; table and window: 5 ms]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    latency: Option<Duration>,
    /// Interval after the first refusal [default: 1 ms; table and window: 10 ms; turns: 10 µs]
    #[arg(long, value_parser = humantime::parse_duration, value_name = "TIME")]
    initial: Option<Duration>,
    /// Longest interval
    #[arg(long, default_value = "15min", value_parser = humantime::parse_duration, value_name = "TIME")]
    max: Duration,
    /// Growth factor of the interval for each refusal
    #[arg(long, default_value_t = 1.5, value_name = "FACTOR")]
    up: f64,
    /// Factor of the interval for each run of successes [default: 0.6; table, window and turns: 0.9]
    #[arg(long, value_name = "FACTOR")]
    down: Option<f64>,
    /// Jitter of each move, as a fraction of the interval [default: 0; table and window: 0.3; turns: 0.1]
    #[arg(long, value_parser = share, value_name = "SHARE")]
    randomisation: Option<f64>,
    /// Number of successes in a run [default: 5; table, window and turns: 10]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=8_388_607), value_name = "NUMBER")]
    threshold: Option<u32>,
}

/// All calls are kept, which takes about 300 MB.
const MOST_CALLS: u32 = 5_000_000;

/// The kind of service that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Accepts a call if enough time has passed since the previous one
    Gate,
    /// Accepts calls up to a capacity, which rises after refusals
    Table,
    /// Accepts a fixed number of calls in each second of its clock
    Window,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    calls: &'a [Call],
    turned_away: u64,
    times_up: u64,
    times_down: u64,
    times_slept: u64,
    seconds_slept: f64,
}

impl Responsive {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let (Course { calls, turned_away }, paces) = self.course(common.seed())?;
        let metrics: Vec<_> = paces.iter().map(Pace::metrics).collect();
        let sum = |figure: fn(&reattempt::schedule::ResponsiveMetrics) -> u64| metrics.iter().map(figure).sum::<u64>();
        let (up, down) = (sum(|metrics| metrics.times_up), sum(|metrics| metrics.times_down));
        let slept: f64 = metrics.iter().map(|metrics| metrics.total_slept.as_secs_f64()).sum();
        let waits = sum(|metrics| metrics.times_slept);
        let document = Document {
            seed: common.seed(),
            calls: &calls,
            turned_away,
            times_up: up,
            times_down: down,
            times_slept: waits,
            seconds_slept: slept,
        };
        let figure = || match self.service {
            Kind::Gate => figure::of_gate(&calls, self.gap().as_secs_f64()),
            Kind::Table | Kind::Window => figure::of_table(&calls),
        };
        common.show(out, &document, Some(&figure), |out| {
            print(&calls, out)?;
            if self.turns {
                print_minutes(&calls, out)?;
            }
            let accepted = calls.iter().filter(|call| call.accepted).count();
            writeln!(
                out,
                "\n{} calls, {accepted} accepted; the interval went up {up} times and down {down} \
                 times; {waits} waits, {} in all, the longest {:.3} ms.",
                calls.len(),
                text::brief(text::seconds(slept)),
                1e3 * calls.iter().map(|call| call.delay).fold(0.0, f64::max),
            )?;
            if turned_away > 0 {
                writeln!(out, "{turned_away} calls were turned away and not sent.")?;
            }
            if calls.len() == MOST_CALLS as usize {
                writeln!(out, "The run was cut off: no more than {MOST_CALLS} calls are kept.")?;
            }
            Ok(())
        })?;
        Ok(Found::Fine)
    }

    fn gap(&self) -> Duration {
        self.gap.unwrap_or(Duration::from_millis(60))
    }

    /// Fails if an option has no effect on the chosen service.
    fn check_options(&self) -> Result<(), LabError> {
        let options = [
            ("gap", self.gap.is_some(), &[Kind::Gate][..], "gate"),
            ("closed", self.closed.is_some(), &[Kind::Gate], "gate"),
            ("capacity", self.capacity.is_some(), &[Kind::Table, Kind::Window], "table or window"),
            ("largest", self.largest.is_some(), &[Kind::Table], "table"),
            ("adapts", self.adapts.is_some(), &[Kind::Table], "table"),
        ];
        for (option, is_set, services, names) in options {
            if is_set && !services.contains(&self.service) {
                return Err(LabError::new(format!("--{option} needs --service {names}")));
            }
        }
        Ok(())
    }

    /// Returns every call, and the paces of the workers.
    fn course(&self, seed: u64) -> Result<(Course, Vec<Pace>), LabError> {
        self.check_options()?;
        let table = self.service != Kind::Gate;
        let usual = |gate: u64, table_ms: u64| Duration::from_millis(if table { table_ms } else { gate });
        let service = match self.service {
            Kind::Gate => Service::Gate(Gate::new(self.gap(), self.closed.unwrap_or(15))),
            Kind::Table => Service::Table(Table::new(
                self.capacity.unwrap_or(50),
                self.largest.unwrap_or(400),
                self.adapts.unwrap_or(Duration::from_secs(15)),
            )?),
            Kind::Window => Service::Window(Window::new(self.capacity.unwrap_or(50))),
        };
        let workers = self.workers.unwrap_or(if table { 4 } else { 1 });
        let stay = self.stay.or(table.then_some(Duration::from_secs(300)));
        let most = self.calls.unwrap_or(if table { MOST_CALLS } else { 300 });
        let latency = self.latency.unwrap_or(usual(0, 5));
        let pace = self.pace(usual(1, 10))?;
        if self.turns {
            let load = match self.load {
                Some(rate) => Load::Open(rate),
                None => Load::Closed { workers: workers as usize, apart: self.apart },
            };
            pace.give_turns();
            let timer = self.timer.unwrap_or(Duration::from_millis(1));
            let turns = Turns { pace: &pace, load, stay, latency, timer, most };
            let course = turns.course(service, seed);
            return Ok((course, vec![pace]));
        }
        let paces: Vec<_> = (0..workers)
            .map(|_| if self.shared { Ok(pace.clone()) } else { self.pace(usual(1, 10)) })
            .collect::<Result<_, _>>()?;
        let calls = Workers { paces: &paces, apart: self.apart, stay, latency, most }.calls(service, seed);
        let course = Course { calls, turned_away: 0 };
        Ok((course, if self.shared { vec![pace] } else { paces }))
    }

    fn pace(&self, initial: Duration) -> Result<Pace, ConfigError> {
        let table = self.service != Kind::Gate;
        // Turns have defaults of their own, which stay unless an option is given.
        let initial = self.initial.or((!self.turns).then_some(initial));
        let usual_randomisation = (!self.turns).then_some(if table { 0.3 } else { 0.0 });
        let slow = table || self.turns;
        let down = self.down.unwrap_or(if slow { 0.9 } else { 0.6 });
        let legal = initial.unwrap_or_default().max(Duration::from_nanos(1))..=Duration::from_nanos(u64::MAX);
        if !legal.contains(&self.max) {
            return Err(ConfigError::new("max", format_args!("{:?}", self.max), "from `initial` to 584 years"));
        }
        if !(self.up >= 1.0 && self.up.is_finite()) {
            return Err(ConfigError::new("up", self.up, "a finite number, 1 or above"));
        }
        if !(down > 0.0 && down < 1.0) {
            return Err(ConfigError::new("down", down, "a number above 0 and below 1"));
        }
        let pace = match initial {
            Some(initial) => Pace::new().initial(initial),
            None => Pace::new(),
        };
        let pace = match self.randomisation.or(usual_randomisation) {
            Some(randomisation) => pace.randomisation(randomisation),
            None => pace,
        };
        let threshold = self.threshold.unwrap_or(if slow { 10 } else { 5 });
        Ok(pace.max(self.max).up(self.up).down(down).threshold(threshold))
    }
}

/// The number of rows in the table.
const ROWS: usize = 20;

/// Prints the calls in twenty parts of equal size.
fn print(calls: &[Call], out: &mut dyn Write) -> Result<(), LabError> {
    let mut table = text::table(["calls", "until", "accepted", "refused", "delay from", "to", "mean"]);
    let size = calls.len().div_ceil(ROWS).max(1);
    for (number, part) in calls.chunks(size).enumerate() {
        let accepted = part.iter().filter(|call| call.accepted).count();
        let delays = || part.iter().map(|call| call.delay);
        let time = |seconds: f64| text::duration(text::seconds(seconds));
        let first = number * size + 1;
        table.add_row([
            format!("{first} to {}", first + part.len() - 1),
            time(part.last().map_or(0.0, |call| call.at)),
            accepted.to_string(),
            (part.len() - accepted).to_string(),
            time(delays().fold(f64::INFINITY, f64::min)),
            time(delays().fold(0.0, f64::max)),
            time(delays().sum::<f64>() / part.len() as f64),
        ]);
    }
    text::print_table(out, &table)
}

/// Prints the calls sent and accepted in each minute.
fn print_minutes(calls: &[Call], out: &mut dyn Write) -> Result<(), LabError> {
    let mut table = text::table(["minute", "sent a second", "served a second"]);
    let minute = |call: &Call| text::seconds(call.at).as_secs() / 60;
    for calls in calls.chunk_by(|one, next| minute(one) == minute(next)) {
        let served = calls.iter().filter(|call| call.accepted).count();
        let a_second = |count: usize| format!("{:.2}", count as f64 / 60.0);
        let number = calls.first().map_or(0, minute) + 1;
        table.add_row([number.to_string(), a_second(calls.len()), a_second(served)]);
    }
    writeln!(out)?;
    text::print_table(out, &table)
}

#[cfg(test)]
mod tests;
