//! An experiment that shows retries at work. A server fails in many ways. The same calls are sent to it twice: by a
//! plain hyper client, and by that client in a `RetryLayer`.
//!
//! ```text
//! cargo run -p quickstart --example quickstart -- [--seed N] [--calls 300] [--log FILE]
//! ```
//!
//! `experiment/clients.rs` wraps the client, and `experiment/script.rs` has the faults. The output
//! comes from the retry layer's own reports (`timeline.rs`), and from the counts of the server and
//! the callers (`summary.rs`). It ends with two lines:
//!
//! ```text
//! unwrapped: calls 300 ok N attempts N
//! reattempt: calls 300 ok N attempts N amplification N.NN unsafe-repeats N
//! ```
//!
//! - **ok**: calls whose caller got a 2xx response to its last byte.
//! - **attempts**: attempts that the server saw, each of them a line of the log. An attempt whose
//!   connection was refused reached no server; a separate line above counts those.
//! - **amplification**: attempts for each call.
//! - **unsafe-repeats**: POSTs without an idempotency key that arrived again after the server had
//!   carried them out.
//!
//! One seed always gives the same two lines. They can be recomputed from the log:
//!
//! - `attempts` is the number of lines of a client.
//! - `ok` is the number of its calls that have a line with an answer of 200.
//! - `unsafe-repeats` is the number of its lines with method POST and no key whose call has an
//!   executed line with a smaller `attempt_seen`.

mod experiment;
mod summary;
#[cfg(test)]
mod tests;
mod timeline;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use tokio::time::Instant;
use tower::BoxError;

use experiment::figures::Figures;
use experiment::journal::Sender;
use experiment::sending::send_all;
use experiment::{ATTEMPT_TIMEOUT, Experiment, clients};

/// Sends the same calls to a faulty server twice: by a plain hyper client, and by that client in a
/// retry layer.
#[derive(Debug, Parser)]
#[command(name = "quickstart")]
struct Arguments {
    /// Which script of faults to draw
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// The number of calls of each client
    #[arg(long, default_value_t = 300, value_name = "N",
          value_parser = clap::value_parser!(u32).range(1..=100_000))]
    calls: u32,
    /// The file for the server's log, one JSON object per line
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    match quickstart(&Arguments::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quickstart: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn quickstart(arguments: &Arguments) -> Result<(), BoxError> {
    let Arguments { seed, calls, log } = arguments;
    // First, so that a log that cannot be written is reported before the calls.
    let log = log.as_deref().map(|path| create(path).map(|file| (path, file))).transpose()?;
    let started = Instant::now();

    let experiment = Experiment::start(*seed, *calls).await?;
    let bar = progress_bar(u64::from(*calls) * 2)?;
    let plain = clients::unwrapped(experiment.names()?);
    let wrapped = clients::reattempt(experiment.names()?, *seed, *calls);
    let budget = wrapped.policy().budget_ref().clone();
    let (script, journal) = (&experiment.script, &experiment.journal);
    let unwrapped = send_all(plain, Sender::Unwrapped, script, || bar.inc(1)).await?;
    let reattempt = send_all(wrapped, Sender::Reattempt, script, || bar.inc(1)).await?;
    bar.finish_and_clear();

    let mut text = String::new();
    writeln!(
        text,
        "A faulty server (script {seed}, calls: {calls}) meets a plain hyper client, then the same \
         client in\na RetryLayer, which makes up to 3 attempts. Both wait up to {} ms for an \
         answer.\n",
        ATTEMPT_TIMEOUT.as_millis()
    )?;
    timeline::draw(&mut text, &reattempt)?;
    summary::write(&mut text, &unwrapped, &reattempt, &budget)?;
    if let Some((path, file)) = log {
        journal.write_to(BufWriter::new(file)).map_err(|error| unwritable(path, &error))?;
        writeln!(text, "What the server saw is in {}.", path.display())?;
    }
    writeln!(text, "It took {:.1} s.\n", started.elapsed().as_secs_f64())?;
    writeln!(text, "{}", Figures::new(Sender::Unwrapped, &unwrapped, journal))?;
    writeln!(text, "{}", Figures::new(Sender::Reattempt, &reattempt, journal))?;
    experiment.stop().await;
    print(&text)?;
    Ok(())
}

fn create(path: &Path) -> Result<File, String> {
    File::create(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> String {
    format!("cannot write the log {}: {error}", path.display())
}

/// Creates a bar on standard error, hidden if that is not a terminal.
fn progress_bar(calls: u64) -> Result<ProgressBar, BoxError> {
    let style = ProgressStyle::with_template("{pos:>7} of {len} calls  [{bar:50}]  {elapsed}")?;
    Ok(ProgressBar::new(calls).with_style(style.progress_chars("=> ")))
}

/// Prints to standard output, which may be a pipe that is closed early.
fn print(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    match output.write_all(text.as_bytes()).and_then(|()| output.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
