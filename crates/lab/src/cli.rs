//! The command line: the commands, and what all of them understand.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::check::Check;
use crate::contention::Contention;
use crate::error::{Found, LabError};
use crate::get::Get;
use crate::picture::{self, Figure};
use crate::plan::Plan;
use crate::responsive::Responsive;
use crate::storm::{Budgets, Storm};

/// What retries do to delays, load and recovery, before production shows it.
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
    /// The delays of schedules and profiles, and how a call ends that always fails
    Plan(Plan),
    /// What is wrong with a service config or a policy file, and what it does
    Check(Check),
    /// One real request through the retry layer, its attempts as a time line
    Get(Get),
    /// Shared pacing against a service that accepts only slow enough callers
    Responsive(Responsive),
    /// Clients that contend for one row: calls made and time to finish, by schedule
    Contention(Contention),
    /// A share of all requests fails: load and success, by retry budget
    Budgets(Budgets),
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
            Command::Storm(command) => command.run(&self.common, out),
        }
    }
}

/// What every command understands.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Options of every command")]
pub(crate) struct Common {
    /// Seed of all random numbers: the same seed gives the same figures [default: 1; get: none]
    #[arg(long, global = true, value_name = "NUMBER")]
    pub(crate) seed: Option<u64>,
    /// Print one JSON document instead of text
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Draw a picture, by the file's name an SVG or a PNG; may be given several times
    #[arg(long, global = true, value_name = "FILE", value_parser = picture::parse_path)]
    plot: Vec<PathBuf>,
}

impl Common {
    /// The seed of simulations.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// For a command that has nothing to draw: says so, where a picture was asked for.
    pub(crate) fn no_picture(&self) -> Result<(), LabError> {
        match self.plot.is_empty() {
            true => Ok(()),
            false => Err(LabError::new("--plot: this command draws no picture")),
        }
    }

    /// Draws the figure into every file that was asked for.
    pub(crate) fn draw(&self, figure: impl FnOnce() -> Figure) -> Result<(), LabError> {
        if self.plot.is_empty() {
            return Ok(());
        }
        let figure = figure();
        self.plot.iter().try_for_each(|path| figure.save(path))
    }
}
