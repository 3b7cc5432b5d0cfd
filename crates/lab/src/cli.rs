//! The command line: the list of commands.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::breaker::Breaker;
use crate::check::Check;
use crate::common::Common;
use crate::contention::Contention;
use crate::endpoints::Endpoints;
use crate::error::{Found, LabError};
use crate::get::Get;
use crate::limits::Limits;
use crate::plan::Plan;
use crate::responsive::Responsive;
use crate::storm::{Budgets, Frontier, Storm};

/// Shows what retries do to delays, load and recovery, before production does.
///
/// Every figure comes from the library's own schedules, budgets and engine, under a virtual clock.
#[derive(Debug, Parser)]
#[command(name = "lab", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "Exit codes: 0 no problem; 1 the input has errors, or the call failed; \
                        2 the command failed.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The delays of schedules and profiles, and the end of a call whose attempts all fail
    Plan(Plan),
    /// The errors and unusual values in a service config or a policy file, and its effect
    ///
    /// Reads a gRPC service config (JSON) or a policy file (TOML, as for `plan --file`). Describes which calls would be
    /// retried and when. Exits with 1 if there are errors.
    Check(Check),
    /// One real request through the retry layer, with a time line of its attempts
    ///
    /// Sends a GET. Redirects are not followed. Exits with 1 if the call fails.
    Get(Get),
    /// Shared pacing against a service that limits the rate of calls
    ///
    /// Shows the delay of each call of a paced client, and whether the service accepted it.
    Responsive(Responsive),
    /// Clients that contend for one row: calls made and time to finish, by schedule
    ///
    /// Each try reads the row and then writes it (optimistic locking). The write is refused if another client has
    /// written since. The client then waits for a delay of the schedule and tries again, until it has written once.
    Contention(Contention),
    /// A circuit breaker while failures follow a script: its states over time, and the calls refused
    ///
    /// A client calls at random times. The script sets the share of its calls that fails. Calls that the breaker
    /// refuses are not sent.
    Breaker(Breaker),
    /// Adaptive limits before a server whose capacity changes: limit, calls served and latency
    ///
    /// The scenes are a capacity step, a slow leak, fast failures, bimodal latency and an idle client. The server
    /// processes every request that it has queued, even if the client has stopped waiting.
    Limits(Limits),
    /// Several servers, of which some are faulty: success and attempts at the faulty ones, by rule of choice
    ///
    /// The scenes have servers that refuse connections, fail or are slow for a while. The rules choose the server of
    /// each attempt: the library's endpoints, tower's balancer, round robin, and Envoy's outlier detection.
    Endpoints(Endpoints),
    /// Failures of a share of all requests: load and success, by retry budget
    ///
    /// The server has unlimited capacity and fails a random share of the requests. The table has its load and the calls
    /// that succeed under each budget. One client makes all calls, or many clients make one call a second each.
    Budgets(Budgets),
    /// Harm in an outage against help in a partial failure, by retry budget
    ///
    /// Simulates each kind of budget at several strengths. Harm is the most load that the clients send to a server that
    /// stalls for ten seconds. Help is the share of calls that succeed while 30 % of the attempts fail.
    Frontier(Frontier),
    /// An outage: load, goodput and time to recover, by policy
    ///
    /// The server has a number of workers and a queue before them. It processes every request that it has queued, even
    /// if the client has stopped waiting. So retries can keep a long queue long after its cause has ended.
    Storm(Storm),
}

impl Cli {
    /// Runs the command.
    pub(crate) fn run(self, out: &mut dyn Write) -> Result<Found, LabError> {
        match self.command {
            Command::Plan(command) => command.run(&self.common, out),
            Command::Check(command) => command.run(&self.common, out),
            Command::Get(command) => command.run(&self.common, out),
            Command::Responsive(command) => command.run(&self.common, out),
            Command::Contention(command) => command.run(&self.common, out),
            Command::Breaker(command) => command.run(&self.common, out),
            Command::Limits(command) => command.run(&self.common, out),
            Command::Endpoints(command) => command.run(&self.common, out),
            Command::Budgets(command) => command.run(&self.common, out),
            Command::Frontier(command) => command.run(&self.common, out),
            Command::Storm(command) => command.run(&self.common, out),
        }
    }
}
