//! `lab capacity`: the retry budget for an API that allows so many requests per second.
//!
//! Input: the API's capacity, the clients and their calls. Output: a budget and the reason for it, in words, and a
//! table of all budgets. Each budget runs through three scenes: few requests fail, an outage, and more calls than the
//! API allows. Schedule and limits are the defaults, so only the budgets differ.

use std::io::Write;
use std::ops::Range;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::curves::{Curves, Figures, SECOND};
use super::policy::Policy;
use super::server::{Fault, ServerSettings};
use super::settings::MOST_CALLS;
use super::simulation::Scene;
use super::tick::ticks;
use super::{Course, figure, parallel, seconds};
use crate::common::Common;
use crate::error::{Found, LabError};
use crate::text;
use crate::values::{allowed, length, positive};

/// The options of `lab capacity`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Capacity {
    /// Requests per second that the API allows; those beyond are refused at once
    #[arg(value_name = "CAPACITY", value_parser = allowed)]
    pub(super) capacity: f64,
    /// Number of clients, each with its own budget
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(super) clients: u32,
    /// Calls per second for each client, at random times [default: a load of 80 % of the capacity]
    #[arg(long, value_name = "NUMBER", value_parser = positive)]
    pub(super) rate: Option<f64>,
    /// Duration of the outage
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = length)]
    pub(super) outage: Duration,
}

/// The load if no rate is given, as a share of the capacity.
const LOAD: f64 = 0.8;

/// The share of the requests that fails in the ordinary scene.
const FAILING: f64 = 0.02;

/// The calls of the overload, as a multiple of the capacity.
const OVERLOAD: f64 = 1.5;

/// The time before the outage and after it, and the least duration of the other scenes.
const BEFORE: u64 = 20 * SECOND;
const AFTER: u64 = 60 * SECOND;

/// The least number of calls in the ordinary scene, so that chance does not decide which budget serves the most.
const CALLS: f64 = 20_000.0;

/// The end of a scene's calls that is not judged, because its calls may not have ended.
const LAST: u64 = 10 * SECOND;

/// A budget that serves this much less than the best in the ordinary scene is not recommended.
const WORSE: f64 = 0.005;

/// A budget is preferred to an earlier one of the list if its peak in the outage is below this share of the other's.
const CLEARLY_LOWER: f64 = 0.95;

/// The result of a budget in all three scenes.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) budget: String,
    /// The code that sets it.
    pub(super) how: &'static str,
    pub(super) ordinary: Case,
    pub(super) outage: Case,
    pub(super) overload: Case,
    /// The time from the end of the outage until calls succeed for good; `None` if they never do.
    pub(super) recovery_seconds: Option<usize>,
}

/// The result of a budget in one scene.
#[derive(Debug, Serialize)]
pub(super) struct Case {
    pub(super) attempts: u64,
    /// The most attempts in a second, as a multiple of the capacity.
    pub(super) peak: f64,
    /// The share of the calls that succeed.
    pub(super) served: f64,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    capacity: f64,
    clients: u32,
    calls_per_second: f64,
    answer: &'a [String],
    budgets: &'a [Row],
}

impl Capacity {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let (rows, courses) = self.rows(common.seed())?;
        let answer = self.answer(&rows);
        let document = Document {
            seed: common.seed(),
            capacity: self.capacity,
            clients: self.clients,
            calls_per_second: self.calls(),
            answer: &answer,
            budgets: &rows,
        };
        let Range { start, end } = self.faulty();
        let outage = seconds(start)..seconds(end);
        let title = "An outage of an API with a capacity, under each retry budget";
        let draw = || figure::figure(title, "× the capacity", &courses, self.capacity, &outage);
        common.show(out, &document, Some(&draw), |out| {
            for line in &answer {
                writeln!(out, "{line}")?;
            }
            writeln!(out)?;
            text::print_table(out, &self.table(&rows))
        })?;
        Ok(Found::Fine)
    }

    /// Runs each budget through all scenes. Returns the results, and the curves of the outage.
    pub(super) fn rows(&self, seed: u64) -> Result<(Vec<Row>, Vec<Course>), LabError> {
        self.check()?;
        let policies = Policy::of_capacity();
        let mut storms = Vec::new();
        for (_, policy) in &policies {
            storms.extend(self.scenes(seed).map(|scene| (scene, policy.clone())));
        }
        let mut curves = parallel::run(&storms).into_iter();
        let (mut rows, mut courses) = (Vec::new(), Vec::new());
        for (how, Policy { name, .. }) in policies {
            let [ordinary, outage, overload] = std::array::from_fn(|_| curves.next().unwrap_or_default());
            let figures = self.figures(&outage);
            rows.push(Row {
                budget: name.clone(),
                how,
                ordinary: self.case(&self.figures(&ordinary)),
                outage: self.case(&figures),
                overload: self.case(&self.figures(&overload)),
                recovery_seconds: figures.recovery_seconds,
            });
            courses.push(Course { policy: name, guarded: false, figures, per_second: outage });
        }
        Ok((rows, courses))
    }

    fn check(&self) -> Result<(), LabError> {
        if self.outage.is_zero() {
            return Err(LabError::new("--outage must be longer than 0 s"));
        }
        let (calls, capacity) = (self.calls(), self.capacity);
        if calls > 2.0 * capacity {
            return Err(LabError::new(format!(
                "--rate must be at most {}: {} clients would make {} calls a second, more than twice the capacity, and \
                 no budget makes up for that",
                text::plain(2.0 * capacity / f64::from(self.clients)),
                self.clients,
                text::plain(calls),
            )));
        }
        if calls * seconds(self.faulty().end + AFTER) > MOST_CALLS {
            return Err(LabError::new("--outage must be shorter, or more than 4000 million calls would be made"));
        }
        Ok(())
    }

    /// Returns the calls of all clients in a second.
    fn calls(&self) -> f64 {
        self.rate.map_or(LOAD * self.capacity, |rate| rate * f64::from(self.clients))
    }

    /// Returns the time of the outage.
    fn faulty(&self) -> Range<u64> {
        BEFORE..BEFORE + ticks(self.outage)
    }

    /// Returns the scenes: some requests fail, the API answers nothing for a while, and too many calls.
    fn scenes(&self, seed: u64) -> [Scene; 3] {
        let calls = self.calls();
        let outage = self.faulty();
        let lasts = outage.end + AFTER;
        let ordinary = AFTER.max(ticks(text::seconds(CALLS / calls)));
        [
            self.scene(calls, ordinary, (Fault::Refuse(FAILING), 0..u64::MAX), seed),
            self.scene(calls, lasts, (Fault::Stall, outage), seed),
            self.scene(OVERLOAD * self.capacity, AFTER, (Fault::Stall, 0..0), seed),
        ]
    }

    fn scene(&self, calls: f64, duration: u64, (fault, faulty): (Fault, Range<u64>), seed: u64) -> Scene {
        // A request takes some 100 ms, so that whole workers and milliseconds differ little from the capacity.
        let workers = (self.capacity / 10.0).ceil();
        let service = whole(1000.0 * workers / self.capacity);
        Scene {
            clients: self.clients,
            rate: calls / f64::from(self.clients),
            duration,
            // The last calls have time for their retries.
            end: duration + 30 * SECOND,
            timeout: SECOND + 2 * service,
            network: 1,
            server: ServerSettings {
                workers: whole(workers),
                service,
                // Requests wait for about half a second at most, so that each answer is in time.
                queue: usize::try_from(whole(self.capacity / 2.0)).unwrap_or(usize::MAX),
                fault,
                faulty,
                burst: None,
                refusal_cost: 0.0,
            },
            drop_every: None,
            restart_every: None,
            seed,
        }
    }

    fn case(&self, figures: &Figures) -> Case {
        let peak = figures.peak_load as f64 / self.capacity;
        Case { attempts: figures.attempts, peak, served: 1.0 - figures.lost }
    }

    fn figures(&self, curves: &Curves) -> Figures {
        let second = |ticks: u64| usize::try_from(ticks / SECOND).unwrap_or(usize::MAX);
        let end = self.faulty().end.next_multiple_of(SECOND);
        curves.figures(0..second(BEFORE - LAST), second(end)..second(end + AFTER - LAST))
    }

    /// Answers the question in sentences. The first row is without retries, the second the default budget. The last is
    /// without a budget, which is never the answer.
    fn answer(&self, rows: &[Row]) -> Vec<String> {
        let (calls, capacity) = (self.calls(), self.capacity);
        let mut answer = vec![format!(
            "{} {} calls a second; the API allows {} (a load of {}).",
            if self.clients == 1 { "1 client makes".to_owned() } else { format!("{} clients make", self.clients) },
            text::plain(calls),
            text::plain(capacity),
            text::percent(calls / capacity),
        )];
        if calls > capacity {
            answer.push("The calls alone exceed the capacity. No budget makes up for that: send fewer.".to_owned());
        }
        let [without, retrying @ .., _] = rows else { return answer };
        let [default, ..] = retrying else { return answer };
        answer.push(format!(
            "In an outage of {}, the default budget sends at most {:.2} × the capacity ({:.2} × without retries).",
            text::brief(self.outage),
            default.outage.peak,
            without.outage.peak
        ));
        let best = best(retrying);
        answer.push(format!(
            "Use the budget \"{}\" ({}), because it serves {} of the calls while {} of the requests fail ({} without \
             retries), and sends at most {:.2} × the capacity in the outage: {}.",
            best.budget,
            best.how,
            text::percent(best.ordinary.served),
            text::percent(FAILING),
            text::percent(without.ordinary.served),
            best.outage.peak,
            match best.budget == default.budget {
                true => "none that serves as many sends clearly less",
                false => "clearly the least of those that serve as many",
            },
        ));
        answer.push(format!(
            "With {OVERLOAD} times as many calls as allowed, it sends at most {:.2} × the capacity and serves {} ({} \
             without retries): in an overload, only fewer calls help.",
            best.overload.peak,
            text::percent(best.overload.served),
            text::percent(without.overload.served),
        ));
        answer
    }

    fn table(&self, rows: &[Row]) -> comfy_table::Table {
        let served = format!("{} fail: served", text::percent(FAILING));
        let columns = ["budget", &served, "outage: peak", "served", "recovery", "overload: peak", "served"];
        let mut table = text::table(columns);
        for Row { budget, ordinary, outage, overload, recovery_seconds, .. } in rows {
            let times = |peak: f64| format!("{peak:.2} ×");
            table.add_row([
                budget.clone(),
                text::percent(ordinary.served),
                times(outage.peak),
                text::percent(outage.served),
                match recovery_seconds {
                    // A server that is overloaded before the outage has no state to return to.
                    _ if self.calls() > self.capacity => "-".to_owned(),
                    Some(seconds) => format!("{seconds} s"),
                    None => "none".to_owned(),
                },
                times(overload.peak),
                text::percent(overload.served),
            ]);
        }
        table
    }
}

/// Returns the budget to use. It recovers if any does, serves about as many calls as the best while few requests fail,
/// and has the lowest peak of those in the outage. Earlier budgets need less from the program, so a later one has to be
/// clearly better.
pub(super) fn best(rows: &[Row]) -> &Row {
    let recovers = |row: &Row| row.recovery_seconds.is_some();
    let some_recover = rows.iter().any(recovers);
    let most = rows.iter().map(|row| row.ordinary.served).fold(0.0, f64::max);
    let serves = |row: &Row| row.ordinary.served >= most - WORSE;
    let good = rows.iter().filter(|row| (recovers(row) || !some_recover) && serves(row));
    let better = |best: &&Row, row: &Row| row.outage.peak < CLEARLY_LOWER * best.outage.peak;
    let chosen = good.fold(None, |best, row| Some(best.filter(|best| !better(best, row)).unwrap_or(row)));
    chosen.unwrap_or(&rows[0])
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "never below zero, and the cast saturates")]
fn whole(value: f64) -> u64 {
    (value.round() as u64).max(1)
}
