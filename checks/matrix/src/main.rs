//! The fault matrix: every fault of `reattempt-faults`, over each protocol, client and stack, against the README's
//! table.
//!
//! `reattempt-matrix-check` runs all cells. `--tenth SEED` runs a random tenth, as CI does. `--only TEXT` runs the
//! cells whose name contains a text. In each cell, all first attempts meet the fault, then the servers recover. The
//! clock is paused, and later attempts wait for the recovery, so no result depends on speed.
//!
//! `--beside` runs the scenes of the chosen cells with the client alone, below the layer and below the standard stack.
//! It fails where the client alone serves more calls.

mod beside;
mod call;
mod cell;
mod client;
mod exchange;
mod expected;
mod fault;
mod leaks;
mod run;
mod table;

use std::collections::BTreeMap;
use std::io::{Write, stderr, stdout};
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use beside::Beside;
use cell::{Cell, Stack};
use indicatif::{ProgressBar, ProgressStyle};
use reattempt_faults::Tls;
use table::Table;
use tokio::time::Instant;
use tower::BoxError;

/// Reached only by a cell that hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A cell waits for its sockets part of the time.
const THREADS: usize = 4;

/// The most failures that are printed.
const PRINTED: usize = 40;

fn main() -> ExitCode {
    match Choice::read(std::env::args().skip(1)).and_then(|choice| check(&choice)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            let _ = writeln!(stderr(), "error: {error}");
            ExitCode::from(2)
        }
    }
}

/// The cells to run.
#[derive(Debug, Default)]
struct Choice {
    tenth: Option<u64>,
    only: Option<String>,
    beside: bool,
}

impl Choice {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self, BoxError> {
        let mut choice = Self::default();
        while let Some(option) = arguments.next() {
            if option == "--beside" {
                choice.beside = true;
                continue;
            }
            let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
            match &*option {
                "--tenth" => {
                    choice.tenth = Some(value.parse().map_err(|_| format!("--tenth {value}: the seed is a number"))?);
                }
                "--only" => choice.only = Some(value),
                _ => return Err(format!("{option} is not known: --tenth SEED, --only TEXT, --beside").into()),
            }
        }
        Ok(choice)
    }

    fn cells(&self) -> (Vec<Cell>, BTreeMap<&'static str, usize>) {
        let mut left_out = BTreeMap::new();
        let mut cells = Vec::new();
        for (number, cell) in (0_u64..).zip(Cell::all()) {
            let drawn = self.tenth.is_none_or(|seed| mixed(seed ^ mixed(number)).is_multiple_of(10));
            let named = self.only.as_ref().is_none_or(|text| cell.to_string().contains(text.as_str()));
            match cell.left_out() {
                _ if !drawn || !named => {}
                _ if self.beside && cell.stack != Stack::Retry => {}
                Some(reason) => *left_out.entry(reason).or_default() += 1,
                None if self.beside => cells.extend(beside::STACKS.map(|stack| Cell { stack, ..cell })),
                None => cells.push(cell),
            }
        }
        (cells, left_out)
    }
}

/// Returns the number that SplitMix64 produces from a seed.
fn mixed(seed: u64) -> u64 {
    let mut number = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

/// Runs the cells. Returns `true` if all are as expected.
fn check(choice: &Choice) -> Result<bool, BoxError> {
    let began = Instant::now();
    if let Some(seed) = choice.tenth {
        writeln!(stdout(), "the tenth of seed {seed}")?;
    }
    let (cells, left_out) = choice.cells();
    let number = cells.len();
    let panics = count_panics();
    let certificates = Arc::new((Tls::new()?, Tls::for_names(["other.example"])?));
    let queue = Arc::new(Mutex::new(cells.into_iter()));
    let running = Arc::new(Mutex::new(Vec::<Cell>::new()));
    let (done, results) = mpsc::channel();
    for _ in 0..THREADS {
        let (queue, running, done) = (Arc::clone(&queue), Arc::clone(&running), done.clone());
        let certificates = Arc::clone(&certificates);
        thread::spawn(move || {
            loop {
                let Some(cell) = locked(&queue).next() else { return };
                locked(&running).push(cell);
                let certificates = Arc::clone(&certificates);
                let ended = thread::spawn(move || run::run(cell, &certificates.0, &certificates.1)).join();
                locked(&running).retain(|other| *other != cell);
                // After a hang the receiver is gone.
                let _ = done.send((cell, ended.unwrap_or_else(|_| Err("panicked".to_owned()))));
            }
        });
    }
    let bar = ProgressBar::new(number as u64);
    bar.set_style(ProgressStyle::with_template("{bar:40} {pos}/{len} cells, {msg} wrong, {eta} left")?);
    bar.set_message("0");
    let (mut table, mut beside, mut failures) = (Table::default(), Beside::default(), Vec::new());
    for _ in 0..number {
        match results.recv_timeout(HANGS) {
            Ok((cell, ended)) => {
                table.add(cell, ended.is_ok());
                match ended {
                    Ok(counts) if choice.beside => failures.extend(beside.add(cell, counts)),
                    Ok(_) => {}
                    Err(failure) => failures.push(format!("{cell}: {failure}")),
                }
            }
            Err(_) => {
                failures.extend(locked(&running).iter().map(|cell| format!("{cell}: hangs")));
                break;
            }
        }
        bar.inc(1);
        bar.set_message(failures.len().to_string());
    }
    bar.finish_and_clear();
    let panics = panics.load(Ordering::SeqCst);
    let mut out = stdout().lock();
    for failure in failures.iter().take(PRINTED) {
        writeln!(out, "{failure}")?;
    }
    match choice.beside {
        true => writeln!(out, "{beside}")?,
        false => writeln!(out, "{table}")?,
    }
    for (reason, cells) in left_out {
        writeln!(out, "{cells} cells are left out: {reason}")?;
    }
    let unsafe_cells = failures.iter().filter(|failure| failure.contains("UNSAFE")).count();
    let hangs = failures.iter().filter(|failure| failure.ends_with("hangs")).count();
    writeln!(
        out,
        "{number} cells in {:.0} s: {} wrong, {unsafe_cells} unsafe, {hangs} hang, {panics} panics",
        began.elapsed().as_secs_f64(),
        failures.len(),
    )?;
    Ok(failures.is_empty() && panics == 0)
}

/// Counts panics, those of tasks included.
fn count_panics() -> Arc<AtomicUsize> {
    let panics = Arc::new(AtomicUsize::new(0));
    let (counted, print) = (Arc::clone(&panics), std::panic::take_hook());
    std::panic::set_hook(Box::new(move |info| {
        counted.fetch_add(1, Ordering::SeqCst);
        print(info);
    }));
    panics
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
