//! The command line: the list of commands.

use std::io::Write;

use clap::{Parser, Subcommand};

use crate::check::Check;
use crate::common::Common;
use crate::contention::Contention;
use crate::error::{Found, LabError};
use crate::get::Get;
use crate::plan::Plan;
use crate::responsive::Responsive;
use crate::storm::{Budgets, Frontier, Storm};

/// Shows what retries do to delays, load and recovery, before production does.
///
/// Every figure comes from the library's own schedules, budgets and engine, under a virtual clock.
#[derive(Debug, Parser)]
#[command(name = "lab", version, max_term_width = 100, subcommand_required = true)]
#[command(after_help = "Exit codes: 0 all is well; 1 something was found that is not; \
                        2 it could not be done.")]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The delays of schedules and profiles, and how a call ends whose attempts all fail
    Plan(Plan),
    /// The errors and unusual values in a service config or a policy file, and its effect
    Check(Check),
    /// One real request through the retry layer, with a time line of its attempts
    Get(Get),
    /// Shared pacing against a service that accepts only slow enough callers
    Responsive(Responsive),
    /// Clients that contend for one row: calls made and time to finish, by schedule
    Contention(Contention),
    /// A share of all requests fails: load and success, by retry budget
    Budgets(Budgets),
    /// Harm in an outage against help in a partial failure, by retry budget
    Frontier(Frontier),
    /// An outage: load, goodput and time to recover, by policy
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
            Command::Budgets(command) => command.run(&self.common, out),
            Command::Frontier(command) => command.run(&self.common, out),
            Command::Storm(command) => command.run(&self.common, out),
        }
    }
}
