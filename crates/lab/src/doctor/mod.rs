//! `lab doctor`: the crates of a dependency tree that retry, and how their attempts multiply.
//!
//! Input: a Cargo.lock of any version. Output: each crate of the table that sends a request more than once, with its
//! failures and the setting that turns it off, and the most attempts of one call. At run time, `Sends` of
//! reattempt-faults counts the requests that are really sent for them.

mod diagnosis;
mod lock;
mod retriers;
mod table;
#[cfg(test)]
mod tests;

use std::io::{Read, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::styling::Style;
use reattempt::RetryPolicy;

use crate::common::Common;
use crate::error::{Found, LabError};
use diagnosis::{Diagnosis, Found as FoundRetrier};
use lock::Lock;
use table::Kind;

/// The options of `lab doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// The lock file; - for standard input
    #[arg(value_name = "CARGO_LOCK", default_value = "Cargo.lock")]
    file: PathBuf,
    /// The attempts that the program itself allows a call [default: those of RetryPolicy]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    attempts: Option<u32>,
    /// Exit with 1 if a crate repeats requests by default
    #[arg(long)]
    strict: bool,
}

impl Doctor {
    pub(crate) fn run(self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        common.no_picture()?;
        let name = match self.file.as_os_str() == "-" {
            true => "<stdin>".to_owned(),
            false => self.file.display().to_string(),
        };
        let text = self.read().map_err(|error| {
            LabError::new(format!("cannot read {name}: {error} (`cargo generate-lockfile` writes a lock file)"))
        })?;
        let lock = Lock::parse(&text).map_err(|error| LabError::new(format!("{name}: {error}")))?;
        let attempts = self.attempts.unwrap_or(RetryPolicy::http().limits().max_attempts);
        let diagnosis = Diagnosis::of(&lock, attempts);
        common.show(out, &diagnosis, None, |out| print(&diagnosis, &name, out))?;
        Ok(if self.strict && diagnosis.multiplies() { Found::Problems } else { Found::Fine })
    }

    fn read(&self) -> std::io::Result<String> {
        if self.file.as_os_str() != "-" {
            return std::fs::read_to_string(&self.file);
        }
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        Ok(text)
    }
}

fn print(diagnosis: &Diagnosis, file: &str, out: &mut dyn Write) -> Result<(), LabError> {
    let Diagnosis { packages, attempts, most_attempts, retriers } = diagnosis;
    let (acting, others): (Vec<_>, Vec<_>) = retriers.iter().partition(|it| it.acts());
    writeln!(out, "{file}: {packages} packages, {} of which repeat requests by default", acting.len())?;
    if *most_attempts > u64::from(*attempts) {
        writeln!(
            out,
            "One call with {attempts} attempts of its own may become {most_attempts}, if every crate repeats the same failure."
        )?;
    }
    for retrier in acting {
        print_retrier(retrier, *attempts, out)?;
    }
    if !others.is_empty() {
        writeln!(out, "\nWithout effect on the number of requests, unless the program asks for it:")?;
    }
    for retrier in others {
        print_retrier(retrier, *attempts, out)?;
    }
    Ok(())
}

fn print_retrier(retrier: &FoundRetrier, attempts: u32, out: &mut dyn Write) -> Result<(), LabError> {
    let bold = Style::new().bold();
    let FoundRetrier { name, version, kind, through, most_attempts, after, off, source, read, .. } = retrier;
    let kind = match kind {
        Some(Kind::Attempts(own)) => {
            let below: String = through.iter().map(|name| format!(" × {name}")).collect();
            let most = most_attempts.unwrap_or_default();
            format!("{own} attempts{below}; {most} with the {attempts} of the program")
        }
        Some(Kind::Uncounted) => "no fixed number of attempts".to_owned(),
        Some(Kind::Unsent) => "repeats requests that were never sent".to_owned(),
        Some(Kind::Connections) => "repeats connections".to_owned(),
        Some(Kind::OnDemand) => "only if the program asks for it".to_owned(),
        Some(Kind::Once) => "sends each request once".to_owned(),
        None => format!("unknown: the oldest version in the table is {}", read[0]),
    };
    let newer = match retrier.is_newer {
        true => format!(" (in {}, the newest version that was read)", read[1]),
        false => String::new(),
    };
    writeln!(out, "\n{bold}{name} {version}{bold:#}: {kind}{newer}")?;
    let lines = [("after", *after), ("off", *off), ("source", source.as_deref())];
    for (label, text) in lines {
        if let Some(text) = text {
            writeln!(out, "  {label:<8}{text}")?;
        }
    }
    Ok(())
}
