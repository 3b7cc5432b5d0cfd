//! `lab replay`: the calls of a recorded outage under other policies.
//!
//! Input: a recording of `reattempt-faults`. Output, for each policy: calls that succeed, attempts, and the time that
//! calls wait. An attempt has the outcome that was last recorded before it, so only the policy changes.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use reattempt::Verdict;
use reattempt::classify::verdict_of_status;
use reattempt::schedule::{Failure, FailureKind};
use reattempt_core::CallEnd;
use reattempt_core::event::sent_after_failure;
use reattempt_faults::{Recording, ServiceFault};
use reattempt_grpc::Code;
use serde::Serialize;

use super::client::{DESTINATION, Retrying};
use super::policy::{self, Choice, Policy};
use super::tick::{ticks, time};
use crate::common::Common;
use crate::error::{Found, LabError};
use crate::events::EventQueue;
use crate::text;

/// The policies that are compared by default.
const USUAL: [&str; 4] = ["none", "naive", "unlimited", "ours"];

/// The options of `lab replay`.
#[derive(Debug, Args)]
#[command(after_long_help = policy::HELP)]
pub(crate) struct Replay {
    /// The recording, in TOML
    #[arg(value_name = "FILE")]
    recording: PathBuf,
    /// Policies to compare, named as for `lab storm`, without guards [default: none naive unlimited ours]
    #[arg(value_name = "POLICY", value_parser = policy::parse)]
    policies: Vec<Choice>,
    /// A TOML file with a table for each policy
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
}

/// The result of a policy.
#[derive(Debug, Serialize)]
struct Row {
    policy: String,
    calls: usize,
    succeeded: usize,
    failed: usize,
    /// Calls whose next attempt is later than the end of the recording.
    undecided: usize,
    attempts: usize,
    /// The time from the first outcome to the last, in seconds, of the calls that succeeded after a failure.
    mean_wait: f64,
    longest_wait: f64,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    seed: u64,
    destination: &'a str,
    seconds: f64,
    policies: &'a [Row],
}

impl Replay {
    pub(crate) fn run(self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        common.no_picture()?;
        let file = self.recording.display();
        let text = std::fs::read_to_string(&self.recording)
            .map_err(|error| LabError::new(format!("cannot read {file}: {error}")))?;
        let recording = Recording::from_toml(&text).map_err(|error| LabError::new(format!("{file}: {error}")))?;
        let calls = recording.calls().len();
        if calls == 0 {
            return Err(LabError::new(format!("{file}: `calls-ms` is empty, so there is nothing to simulate")));
        }
        let seconds = recording.end().as_secs_f64();
        let rate = calls as f64 / seconds.max(1.0);
        let choices = match (self.policies.is_empty(), &self.file) {
            (true, None) => USUAL.map(policy::parse).into_iter().collect::<Result<_, _>>().map_err(LabError::new)?,
            _ => self.policies,
        };
        let policies = policy::chosen(&choices, self.file.as_deref(), rate)?;
        let rows = policies.iter().map(|policy| simulate(&recording, policy, common.seed()));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let (seed, destination) = (common.seed(), recording.destination());
        let document = Document { seed, destination, seconds, policies: &rows };
        common.show(out, &document, None, |out| print(&recording, &rows, out))?;
        Ok(Found::Fine)
    }
}

fn print(recording: &Recording, rows: &[Row], out: &mut dyn Write) -> Result<(), LabError> {
    let length = text::brief(recording.end());
    writeln!(out, "{} calls to {} in {length}\n", recording.calls().len(), recording.destination())?;
    let mut table =
        text::table(["policy", "succeeded", "failed", "undecided", "attempts", "mean wait", "longest wait"]);
    for row in rows {
        table.add_row([
            row.policy.clone(),
            format!("{} ({})", row.succeeded, text::percent(row.succeeded as f64 / row.calls as f64)),
            row.failed.to_string(),
            row.undecided.to_string(),
            row.attempts.to_string(),
            text::duration(text::seconds(row.mean_wait)),
            text::duration(text::seconds(row.longest_wait)),
        ]);
    }
    text::print_table(out, &table)?;
    writeln!(
        out,
        "\nAn attempt has the outcome that was last recorded before it. The server's load is not simulated, and every\n\
         call may be repeated. Time limits of attempts have no effect, because durations are not recorded. Waits are\n\
         those of calls that succeeded after a failure. Undecided calls would have sent their next attempt after the\n\
         end of the recording."
    )?;
    Ok(())
}

/// Simulates all calls as those of one client, with one budget.
fn simulate(recording: &Recording, policy: &Policy, seed: u64) -> Result<Row, LabError> {
    if !policy.guards.is_empty() || policy.store().is_some() {
        let reason = "a recording has no latencies and no other clients, so guards and fleet budgets are not simulated";
        return Err(LabError::new(format!("{}: {reason}", policy.name)));
    }
    let (budget, end) = (policy.budget_of_client(), ticks(recording.end()));
    let started = recording.calls().map(ticks).collect::<Vec<_>>();
    let mut retrying = started.iter().map(|_| None::<Box<Retrying>>).collect::<Vec<_>>();
    let mut queue = EventQueue::new();
    for (call, at) in started.iter().enumerate() {
        queue.after(*at, call);
    }
    let (mut succeeded, mut failed, mut undecided, mut attempts) = (0, 0, 0, 0);
    let mut waits = Vec::new();
    while let Some(call) = queue.next() {
        let now = queue.now();
        if now > end {
            undecided += 1;
            continue;
        }
        attempts += 1;
        if let Some(retrying) = &mut retrying[call] {
            retrying.on_send();
        }
        let verdict = verdict(recording.fault_at(time(now)));
        if verdict == Verdict::Success {
            let account = retrying[call].as_mut().map(|retrying| retrying.take_account());
            account.unwrap_or_default().settle(CallEnd::Succeeded, DESTINATION, &budget);
            succeeded += 1;
            if retrying[call].is_some() {
                waits.push(time(now - started[call]).as_secs_f64());
            }
            continue;
        }
        let number = u32::try_from(call).unwrap_or(u32::MAX);
        let state = retrying[call].get_or_insert_with(|| Box::new(Retrying::new(policy, seed, number)));
        // A recording has no times of sending. Outcomes of first attempts within a millisecond may have one cause.
        let sent = if state.attempt() > 1 { sent_after_failure(time(now)) } else { time(now) };
        match state.failed(policy, &budget, Ok(verdict), [started[call], now], sent) {
            Ok(after) => queue.after(ticks(after), call),
            Err(_) => failed += 1,
        }
    }
    let mean_wait = waits.iter().sum::<f64>() / waits.len().max(1) as f64;
    let longest_wait = waits.iter().copied().fold(0.0, f64::max);
    let (policy, calls) = (policy.name.clone(), started.len());
    Ok(Row { policy, calls, succeeded, failed, undecided, attempts, mean_wait, longest_wait })
}

/// Returns the library's verdict on a recorded outcome of a request that may be repeated.
fn verdict(fault: ServiceFault) -> Verdict {
    match fault {
        ServiceFault::NoFault => Verdict::Success,
        ServiceFault::Status(status) => verdict_of_status(status),
        ServiceFault::Grpc(code) => reattempt_grpc::verdict_of_code(Code::from_number(code)),
        ServiceFault::Error(std::io::ErrorKind::ConnectionRefused) => {
            Verdict::NotProcessed(Failure::new(FailureKind::Connect))
        }
        ServiceFault::Error(std::io::ErrorKind::TimedOut) => Verdict::Transient(Failure::new(FailureKind::Timeout)),
        _ => Verdict::Transient(Failure::new(FailureKind::Network)),
    }
}
