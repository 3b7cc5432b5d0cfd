//! `lab plan`: the delays of schedules and profiles.
//!
//! Input: policies, by name, in a word or from a file. Output: for each retry the bounds and the mean of
//! its delay, the total delay, and the share of failing calls that make it. Then the end of a call
//! whose attempts all fail.

mod bands;
mod calls;
mod figure;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::StatusCode;
use reattempt::Verdict;
use reattempt::classify::verdict_of_status;
use reattempt::schedule::{Failure, FailureKind};
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::policy::{self, Policy};
use crate::progress::Progress;
use crate::text;
use bands::Band;
use calls::{Case, Ending};

/// The options of `lab plan`.
#[derive(Debug, Args)]
#[command(after_long_help = help())]
#[command(allow_negative_numbers = true)]
pub(crate) struct Plan {
    /// Profiles or schedules, such as stripe, stripe:max_attempts=5,
    /// exponential:base=50ms,jitter=equal or list:100ms,1s,5s [default: standard, or exponential
    /// with the options below]
    #[arg(value_name = "POLICY")]
    policies: Vec<String>,
    /// A TOML file with a table for each policy
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Maximum number of retries to show
    #[arg(long, short = 'n', default_value_t = 10, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    retries: u32,
    /// Duration of each attempt
    #[arg(long, default_value = "0s", value_name = "TIME", value_parser = humantime::parse_duration)]
    attempt_time: Duration,
    /// Failure of each attempt: an HTTP status, or connect, network, timeout
    #[arg(long, default_value = "503", value_name = "FAILURE", value_parser = parse_failure)]
    failure: Failure,
    /// Number of simulated calls for the means
    #[arg(long, default_value_t = 10_000, value_name = "NUMBER",
          value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    calls: u32,
    // Last, because its heading also covers the options after it.
    #[command(flatten)]
    changed: Changed,
}

/// The options that override every policy named on the command line.
#[derive(Debug, Args)]
#[command(next_help_heading = "Options that change the policies named on the command line")]
struct Changed {
    /// Base delay, such as 50ms
    #[arg(long, value_name = "TIME")]
    base: Option<String>,
    /// Growth factor of the interval
    #[arg(long, value_name = "FACTOR")]
    factor: Option<String>,
    /// Longest interval, or none
    #[arg(long, value_name = "TIME")]
    cap: Option<String>,
    /// Kind of jitter: none, full, equal or symmetric
    #[arg(long, value_name = "KIND")]
    jitter: Option<String>,
    /// Maximum number of attempts, the first included, or none
    #[arg(long, value_name = "NUMBER")]
    max_attempts: Option<String>,
    /// Time limit from the start of a call to its last retry, or none
    #[arg(long, value_name = "TIME")]
    max_elapsed: Option<String>,
}

impl Changed {
    /// Returns the policy of a word, with these options applied.
    fn policy(&self, word: &str) -> Result<Policy, LabError> {
        let changes = [
            ("base", &self.base),
            ("factor", &self.factor),
            ("cap", &self.cap),
            ("jitter", &self.jitter),
            ("max_attempts", &self.max_attempts),
            ("max_elapsed", &self.max_elapsed),
        ];
        let mut word = word.to_owned();
        for (key, value) in changes {
            if let Some(value) = value {
                word += if word.contains(':') { "," } else { ":" };
                word += &format!("{key}={value}");
            }
        }
        policy::parse_word(&word).map_err(|error| LabError::new(format!("{word}: {error}")))
    }

    fn is_empty(&self) -> bool {
        let Self { base, factor, cap, jitter, max_attempts, max_elapsed } = self;
        [base, factor, cap, jitter, max_attempts, max_elapsed].iter().all(|change| change.is_none())
    }
}

fn help() -> String {
    format!(
        "Profiles: {}.\n\nA policy in a file:\n\n  \
         [orders]\n  \
         profile = \"stripe\"           # or a schedule of its own:\n  \
         schedule = \"exponential\"     # decorrelated, constant, linear, truncated, list\n  \
         base = \"100ms\"\n  \
         factor = 2\n  \
         cap = \"5s\"                   # or \"none\"\n  \
         jitter = \"full\"              # none, equal, symmetric (with randomisation = 0.2)\n  \
         max_attempts = 4             # or \"none\"\n  \
         max_elapsed = \"20s\"          # or \"none\"\n  \
         max_server_delay = \"60s\"\n  \
         attempt_timeout = \"2s\"\n  \
         budget = {{ ratio = 0.1, capacity = 10, min_per_second = 0.01 }}\n                               \
         # or {{ rate = 5, burst = 10 }}, {{ capacity = 20 }},\n                               \
         # \"cautious\", \"ratio\", \"aws_quota\", \"none\", \"default\"",
        policy::profile_names()
    )
}

/// Parses a failure and classifies it by the status table.
fn parse_failure(text: &str) -> Result<Failure, String> {
    match text {
        "connect" => return Ok(Failure::new(FailureKind::Connect)),
        "network" => return Ok(Failure::new(FailureKind::Network)),
        "timeout" => return Ok(Failure::new(FailureKind::Timeout)),
        _ => {}
    }
    let status: StatusCode = text.parse().map_err(|_| {
        let hint = policy::did_you_mean(text, ["connect", "network", "timeout"]);
        format!("must be an HTTP status, or connect, network, timeout{hint}")
    })?;
    match verdict_of_status(status) {
        Verdict::Transient(failure) | Verdict::NotProcessed(failure) => Ok(failure),
        // The table makes this status permanent, but the classifier of a policy may retry it.
        _ if status.is_client_error() || status.is_server_error() => {
            Ok(Failure::new(FailureKind::Other).with_code(status.as_u16()))
        }
        _ => Err("must be the status of a failure, from 400 to 599".to_owned()),
    }
}

/// The delays and the ends of calls of one policy.
#[derive(Debug, Serialize)]
pub(crate) struct Course {
    policy: String,
    retries: Vec<Band>,
    ending: Ending,
}

impl Course {
    /// Simulates calls whose attempts take no time.
    pub(crate) fn of(policy: &Policy, failure: Failure, seed: u64) -> Self {
        let attempt_time = Duration::ZERO;
        Self::of_case(&Case { policy, failure, attempt_time, calls: 1000, seed }, 10)
    }

    fn of_case(case: &Case<'_>, most: u32) -> Self {
        // Each call is made twice: within the limits, and then to the last delay that is shown.
        let mut progress = Progress::new(2 * u64::from(case.calls));
        let (ending, reached) = case.endings(&mut progress);
        // Retries that the limits always prevent are not shown.
        let most = most.min(u32::try_from(reached.len()).unwrap_or(u32::MAX));
        let retries = bands::bands(case, most, &reached, &mut progress);
        Self { policy: case.policy.name.clone(), retries, ending }
    }

    /// Returns the bounds of each delay, in seconds.
    pub(crate) fn bands(&self) -> Vec<(f64, f64)> {
        self.retries.iter().map(|band| (band.from, band.to)).collect()
    }

    /// Returns the most retries that schedule and attempts allow; infinite for no limit.
    pub(crate) fn most_retries(&self, max_attempts: u32) -> f64 {
        let attempts = match max_attempts {
            u32::MAX => f64::INFINITY,
            attempts => f64::from(attempts.saturating_sub(1)),
        };
        self.ending.schedule_ends_after().map_or(attempts, |ended| ended.min(attempts))
    }

    /// Describes how the calls end; `None` if the number of attempts alone ends them.
    pub(crate) fn ending(&self) -> Option<String> {
        self.ending.ends_otherwise().then(|| self.ending.sentence(Duration::ZERO))
    }

    /// Lists the stop reasons of the calls.
    pub(crate) fn reasons(&self) -> String {
        self.ending.reasons()
    }
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    calls: u32,
    policies: &'a [Course],
}

impl Plan {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let policies = self.policies()?;
        let courses: Vec<_> = policies.iter().map(|policy| self.course(policy, common.seed())).collect();
        let document = Document { seed: common.seed(), calls: self.calls, policies: &courses };
        common.show(out, &document, Some(&|| figure::figure(&courses)), |out| {
            for (number, course) in courses.iter().enumerate() {
                if number > 0 {
                    writeln!(out)?;
                }
                self.print(course, out)?;
            }
            Ok(())
        })?;
        Ok(Found::Fine)
    }

    /// Returns the policies of the command line, and those of the file.
    fn policies(&self) -> Result<Vec<Policy>, LabError> {
        let mut words: Vec<&str> = self.policies.iter().map(String::as_str).collect();
        if words.is_empty() && !self.changed.is_empty() {
            words.push("exponential");
        } else if words.is_empty() && self.file.is_none() {
            words.push("standard");
        }
        let mut policies: Vec<_> = words.into_iter().map(|word| self.changed.policy(word)).collect::<Result<_, _>>()?;
        if let Some(file) = &self.file {
            policies.extend(policy::load(file)?);
        }
        Ok(policies)
    }

    fn course(&self, policy: &Policy, seed: u64) -> Course {
        let Self { failure, attempt_time, calls, .. } = *self;
        Course::of_case(&Case { policy, failure, attempt_time, calls, seed }, self.retries)
    }

    fn print(&self, course: &Course, out: &mut dyn Write) -> Result<(), LabError> {
        writeln!(out, "{}", course.policy)?;
        let mut table = text::table(["retry", "from", "to", "mean", "waited from", "to", "mean", "reached"]);
        let time = |seconds: f64| text::duration(text::seconds(seconds));
        for band in &course.retries {
            table.add_row([
                band.retry.to_string(),
                time(band.from),
                time(band.to),
                time(band.mean),
                time(band.waited_from),
                time(band.waited_to),
                time(band.waited_mean),
                text::percent(band.reached),
            ]);
        }
        text::print_table(out, &table)?;
        writeln!(out, "{}", course.ending.sentence(self.attempt_time))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
