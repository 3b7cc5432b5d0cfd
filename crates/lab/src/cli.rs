//! The command line: the list of commands.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::breaker::Breaker;
use crate::check::Check;
use crate::common::Common;
use crate::connections::Connections;
use crate::contention::Contention;
use crate::doctor::Doctor;
use crate::endpoints::Endpoints;
use crate::error::{Found, LabError};
use crate::get::Get;
use crate::limits::Limits;
use crate::plan::Plan;
use crate::responsive::Responsive;
use crate::storm::{Budgets, Capacity, Frontier, Replay, Storm};

/// Shows the effect of retries on delays, load and recovery, before production does.
///
/// All results come from the library's own schedules, budgets and engine, in virtual time.
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
    /// Delays of schedules and profiles, and the end of a call if all attempts fail
    Plan(Plan),
    /// Errors and unusual values in a service config or a policy file, and its effect
    ///
    /// Reads a gRPC service config (JSON) or a policy file (TOML or JSON, as for `plan --file`). Lists the calls that
    /// would be retried, with their times. Exits with 1 if there are errors.
    Check(Check),
    /// The crates of a dependency tree that retry, and the most attempts that one call may become
    ///
    /// Reads a Cargo.lock. Lists each crate that is known to send a request more than once, with its failures and the
    /// setting that turns it off. Its attempts multiply with those of the program.
    Doctor(Doctor),
    /// A real request through the retry layer, with a timeline of its attempts
    ///
    /// Sends a GET. Redirects are not followed. Exits with 1 if the call fails.
    Get(Get),
    /// Shared pacing against a rate-limited service
    ///
    /// Shows the delay of each call from a paced client, and whether the service accepted the call.
    Responsive(Responsive),
    /// Clients contending for one row: number of calls and time to finish, for each schedule
    ///
    /// Each try reads the row and then writes it (optimistic locking). The write is refused if another client has
    /// written in between. The client then waits for the schedule's delay and tries again, until it has written once.
    Contention(Contention),
    /// A circuit breaker under scripted failures: states over time, and refused calls
    ///
    /// A client calls at random times. The script sets the failure rate. Calls refused by the breaker are not sent.
    Breaker(Breaker),
    /// Adaptive limits in front of a server with changing capacity: limit, calls served and latency
    ///
    /// The scenes are a capacity step, a slow leak, fast failures, bimodal latency and an idle client. The server
    /// processes every queued request, even if the client has stopped waiting.
    Limits(Limits),
    /// Several servers, some of them faulty: success, and attempts at faulty servers, for each load-balancing rule
    ///
    /// The scenes have servers that refuse connections, fail or are slow for a while. The rules pick a server for each
    /// attempt: the library's endpoints, tower's balancer, round robin, and Envoy's outlier detection.
    Endpoints(Endpoints),
    /// Faults that end many calls at once: success, attempts and recovery, for each policy
    ///
    /// The scenes are connections that are reset or end with GOAWAY, servers that restart, crash, refuse or hang up, a
    /// balancer that resets everything, and a token that dies. Clients have several calls on a connection.
    Connections(Connections),
    /// The retry budget for an API that allows so many requests per second, in words and a table
    ///
    /// Runs each budget while 2 % of the requests fail, through an outage, and with 1.5 times as many calls as the API
    /// allows. The API refuses at once what it does not allow. The picture shows the outage.
    Capacity(Capacity),
    /// A constant failure rate: load and success, for each retry budget
    ///
    /// The server has unlimited capacity and fails a random fraction of the requests. The table has the load and the
    /// success rate under each budget, for one client that makes all calls and for many clients that make one call per
    /// second each.
    Budgets(Budgets),
    /// Harm in an outage against benefit in a partial failure, for each retry budget
    ///
    /// Simulates each kind of budget at several strengths. Harm is the peak load on a server that stalls for ten
    /// seconds. Benefit is the success rate of calls while 30 % of the attempts fail.
    Frontier(Frontier),
    /// A recorded outage under other policies: calls that succeed, attempts and waits
    ///
    /// Reads a recording that `reattempt_faults::Recorder` has written in a program. Every call begins when its first
    /// outcome was recorded, and every attempt has the outcome that was last recorded before it.
    Replay(Replay),
    /// An outage: load, goodput and recovery time, for each policy
    ///
    /// The server has a number of workers and a queue. It processes every queued request, even if the client has
    /// stopped waiting. So retries can keep the queue long after the outage has ended.
    Storm(Storm),
}

impl Cli {
    /// Runs the command.
    pub(crate) fn run(mut self, out: &mut dyn Write) -> Result<Found, LabError> {
        self.common.heading = self.heading();
        match self.command {
            Command::Plan(command) => command.run(&self.common, out),
            Command::Check(command) => command.run(&self.common, out),
            Command::Doctor(command) => command.run(&self.common, out),
            Command::Get(command) => command.run(&self.common, out),
            Command::Responsive(command) => command.run(&self.common, out),
            Command::Contention(command) => command.run(&self.common, out),
            Command::Breaker(command) => command.run(&self.common, out),
            Command::Limits(command) => command.run(&self.common, out),
            Command::Endpoints(command) => command.run(&self.common, out),
            Command::Connections(command) => command.run(&self.common, out),
            Command::Capacity(command) => command.run(&self.common, out),
            Command::Budgets(command) => command.run(&self.common, out),
            Command::Frontier(command) => command.run(&self.common, out),
            Command::Replay(command) => command.run(&self.common, out),
            Command::Storm(command) => command.run(&self.common, out),
        }
    }

    /// Returns the command line as the heading of a page. The headers of `get` may be secret.
    fn heading(&self) -> String {
        if matches!(self.command, Command::Get(_)) {
            return "lab get".to_owned();
        }
        let arguments = std::env::args_os().skip(1).map(|argument| format!(" {}", argument.to_string_lossy()));
        ["lab".to_owned()].into_iter().chain(arguments).collect()
    }
}
