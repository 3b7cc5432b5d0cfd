//! The laboratory: what retries do to delays, load and recovery, before production shows it.
//!
//! What flows in: a command line. What flows out: tables for people or JSON for machines, and
//! pictures. Each command is a folder of its own (`budgets` is in `storm`) beside what they share:
//! arguments, the event queue of virtual time, tables, pictures. Whatever is decided or drawn is so by the
//! library's own schedules, budgets and engine.

#![forbid(unsafe_code)]

mod check;
mod cli;
mod contention;
mod error;
mod events;
mod get;
mod picture;
mod plan;
mod policy;
mod progress;
mod responsive;
mod storm;
mod text;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;
use error::LabError;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    // Everything is written through one buffer, which drops colours where nobody sees them.
    let mut out = std::io::BufWriter::new(anstream::stdout());
    let found = cli.run(&mut out).and_then(|found| {
        out.flush()?;
        Ok(found)
    });
    match found {
        Ok(found) => found.into(),
        Err(LabError::NobodyReads) => ExitCode::SUCCESS,
        Err(LabError::Message(message)) => {
            let style = error::style();
            anstream::eprintln!("{style}error:{style:#} {message}");
            ExitCode::from(2)
        }
    }
}
