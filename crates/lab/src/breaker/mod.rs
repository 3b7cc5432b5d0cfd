//! `lab breaker`: the states of a circuit breaker while the share of calls that fails follows a script.
//!
//! Input: breakers, a script, a rate of calls. Output: each stretch of one state with its calls, and curves over time.
//! The library's own breaker decides, in virtual time.

mod client;
mod figure;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use reattempt::guard::CircuitBreaker;
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::policy::{GuardKind, GuardWord};
use crate::progress::Progress;
use crate::text;
use crate::values::{length, positive, share};
use client::{Client, Course, Second, Stretch};

/// The maximum number of calls for one breaker: more would take minutes.
const MOST_CALLS: f64 = 20e6;

/// The options of `lab breaker`.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Breaker {
    /// Breakers to compare: breaker or counting, with optional settings, such as breaker:open_time=5s [default:
    /// breaker and counting]
    #[arg(value_name = "BREAKER", value_parser = parse)]
    breakers: Vec<GuardWord>,
    /// The script: times, each with the failure rate from then on. By default the fault does not last for a multiple of
    /// an open time, so that no probe coincides with its end
    #[arg(long, value_delimiter = ',', value_name = "TIME=SHARE,…", value_parser = step,
          default_value = "0s=0.02,1min=0.8,167s=0.02")]
    errors: Vec<Step>,
    /// Calls per second, at random times
    #[arg(long, default_value_t = 20.0, value_name = "NUMBER", value_parser = positive)]
    rate: f64,
    /// Time from sending a call to its outcome
    #[arg(long, default_value = "50ms", value_name = "TIME", value_parser = length)]
    latency: Duration,
    /// Duration of the load
    #[arg(long, default_value = "6min", value_name = "TIME", value_parser = length)]
    duration: Duration,
}

const HELP: &str = "Breakers:
  breaker   by a rate of failures: failure_ratio, min_calls, consecutive_failures, interval,
            min_failing_time, bucket_period, last_calls, first_open_time, open_time,
            max_open_time, spread, probes, probe_failure_ratio, slow_after
  counting  as sony/gobreaker: consecutive_failures, interval, bucket_period, open_time,
            probes
  such as breaker:failure_ratio=0.3,consecutive_failures=0 or counting:open_time=10s";

/// One step of the script.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Step {
    from: Duration,
    share: f64,
}

/// Parses a breaker in a word.
fn parse(word: &str) -> Result<GuardWord, String> {
    let guard = GuardWord::parse(word)?;
    match guard.kind {
        GuardKind::Breaker(_) => Ok(guard),
        _ => Err("must be breaker or counting".to_owned()),
    }
}

/// Parses a step of the script.
fn step(text: &str) -> Result<Step, String> {
    let (from, failing) = text.split_once('=').ok_or("must be a time and a share, such as 1min=0.8")?;
    Ok(Step { from: length(from)?, share: share(failing)? })
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    breakers: &'a [Shown],
}

/// The result of one breaker.
#[derive(Debug, Serialize)]
struct Shown {
    breaker: String,
    stretches: Vec<Stretch>,
    per_second: Vec<Second>,
}

impl Breaker {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let shown = self.courses(common.seed())?;
        let document = Document { seed: common.seed(), breakers: &shown };
        let figure = || figure::figure(&shown, &self.errors, self.duration);
        common.show(out, &document, Some(&figure), |out| self.print(out, &shown))?;
        Ok(Found::Fine)
    }

    fn courses(&self, seed: u64) -> Result<Vec<Shown>, LabError> {
        if self.errors.windows(2).any(|pair| matches!(pair, [one, next] if one.from >= next.from)) {
            return Err(LabError::new("--errors must be in the order of time"));
        }
        if self.rate * self.duration.as_secs_f64() > MOST_CALLS {
            return Err(LabError::new("more than 20 million calls: shorten --duration"));
        }
        let breakers = match &self.breakers[..] {
            [] => vec![parse("breaker"), parse("counting")]
                .into_iter()
                .collect::<Result<_, _>>()
                .map_err(LabError::new)?,
            given => given.to_vec(),
        };
        let seconds = self.duration.as_secs().saturating_mul(breakers.len() as u64);
        let mut progress = Progress::new(seconds);
        let mut shown = Vec::new();
        for GuardWord { name, kind, .. } in breakers {
            let GuardKind::Breaker(breaker) = kind else { continue };
            let Course { stretches, per_second } = self.client(breaker, seed).run(&mut progress);
            shown.push(Shown { breaker: name, stretches, per_second });
        }
        Ok(shown)
    }

    fn client(&self, breaker: CircuitBreaker, seed: u64) -> Client<'_> {
        Client {
            breaker: breaker.shared(true).seed(seed),
            errors: &self.errors,
            rate: self.rate,
            latency: self.latency,
            duration: self.duration,
            seed,
        }
    }

    fn print(&self, out: &mut dyn Write, shown: &[Shown]) -> Result<(), LabError> {
        let named = |step: &Step| format!("{} fail from {} on", text::percent(step.share), text::brief(step.from));
        let shares: Vec<_> = self.errors.iter().map(named).collect();
        writeln!(out, "{} calls a second. Of the calls that are sent, {}.", self.rate, shares.join(", "))?;
        for Shown { breaker, stretches, .. } in shown {
            let mut table = text::table([&**breaker, "from", "for", "calls", "failed", "refused"]);
            for stretch in stretches {
                table.add_row([
                    stretch.state.clone(),
                    text::duration(text::seconds(stretch.from)),
                    text::duration(text::seconds(stretch.to - stretch.from)),
                    stretch.calls.to_string(),
                    stretch.failed.to_string(),
                    stretch.refused.to_string(),
                ]);
            }
            writeln!(out)?;
            text::print_table(out, &table)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
