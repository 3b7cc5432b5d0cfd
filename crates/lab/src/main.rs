//! The laboratory: simulations of what retries do to delays, load and recovery.
//!
//! Input: a command line. Output: tables, or one JSON document, pictures and pages. Each command is a
//! folder (`budgets` and `frontier` are in `storm`). The other modules are shared: options, the event queue of
//! virtual time, tables, pictures and pages. The library's own schedules, budgets and engine make every
//! decision.

#![forbid(unsafe_code)]

mod breaker;
mod chance;
mod check;
mod cli;
mod common;
mod connections;
mod contention;
mod doctor;
mod endpoints;
mod error;
mod events;
mod former;
mod get;
mod guards;
mod limits;
mod page;
mod plan;
mod policy;
mod progress;
mod responsive;
mod storm;
mod text;
mod values;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use error::LabError;
use reattempt_picture as picture;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // One buffer for all output; `anstream` removes colours unless standard output is a terminal.
    let mut out = std::io::BufWriter::new(anstream::stdout());
    let found = cli.run(&mut out).and_then(|found| {
        out.flush()?;
        Ok(found)
    });
    match found {
        Ok(found) => found.into(),
        Err(LabError::PipeClosed) => ExitCode::SUCCESS,
        Err(LabError::Message(message)) => {
            let style = error::style();
            anstream::eprintln!("{style}error:{style:#} {message}");
            ExitCode::from(2)
        }
    }
}
