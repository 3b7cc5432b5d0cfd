//! Gets the figures: instructions by callgrind, allocations by counting, times by criterion.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use reattempt_benches::{Contender, Row, rows};
use serde_json::Value;

use crate::goals::Figure;

/// Why something could not be measured, in words.
#[derive(Debug)]
pub(crate) struct Error(String);

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What one contender cost for each operation.
#[derive(Debug, Clone, Default)]
struct Costs {
    bare: Option<&'static str>,
    instructions: Option<f64>,
    allocations: f64,
    kept: f64,
    size: Option<f64>,
    boxed: f64,
    nanoseconds: Option<f64>,
}

/// What was measured.
#[derive(Debug, Default)]
pub(crate) struct Figures(HashMap<(String, String), Costs>);

impl Figures {
    /// Counts the wanted rows, on all processors at once.
    pub(crate) fn counted(wanted: &dyn Fn(&str) -> bool) -> Result<Self, Error> {
        let mut jobs: Vec<(&Row, &Contender)> = rows()
            .filter(|row| wanted(row.name))
            .flat_map(|row| row.contenders.iter().map(move |contender| (row, contender)))
            .collect();
        // The longest ones are the last rows: those first, that no processor idles at the end.
        jobs.reverse();
        if jobs.iter().any(|(row, _)| row.counted) {
            have_valgrind()?;
        }

        let progress = progress_bar(jobs.len(), "counting");
        let results = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        let processors = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| {
            for _ in 0..processors {
                scope.spawn(|| {
                    while let Some((row, contender)) =
                        jobs.get(next.fetch_add(1, Ordering::Relaxed))
                    {
                        let costs = count(row, contender);
                        progress.inc(1);
                        if let Ok(mut results) = results.lock() {
                            results.push(costs.map(|costs| (key(row, contender), costs)));
                        }
                    }
                });
            }
        });
        progress.finish_and_clear();
        let results = results.into_inner().map_err(|_| Error::new("a measurement panicked"))?;
        let mut figures = Self(results.into_iter().collect::<Result<_, _>>()?);
        if wanted("size") {
            figures.add_sizes()?;
        }
        Ok(figures)
    }

    fn add_sizes(&mut self) -> Result<(), Error> {
        let sizes = json(&run(Command::new(counts()?).arg("size"))?.0)?;
        for entry in sizes.as_array().into_iter().flatten() {
            let (Some(row), Some(name), size, boxed) =
                (entry[0].as_str(), entry[1].as_str(), entry[2].as_f64(), &entry[3])
            else {
                return Err(Error::new(format!("not a size: {entry}")));
            };
            let boxed = boxed.as_f64().unwrap_or_default();
            let costs = Costs { size, boxed, ..Costs::default() };
            self.0.insert((row.into(), name.into()), costs);
        }
        Ok(())
    }

    /// Times the wanted rows with criterion, which does so for one contender after the other.
    pub(crate) fn add_times(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        let timed: Vec<&Row> = rows().filter(|row| row.timed && wanted(row.name)).collect();
        let results = std::env::temp_dir().join(format!("reattempt-times-{}", std::process::id()));
        let progress = progress_bar(timed.len(), "timing");
        for row in &timed {
            let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
            cargo.args([
                "bench",
                "--quiet",
                "--locked",
                "-p",
                "reattempt-benches",
                "--bench",
                "wall",
            ]);
            cargo.args(["--", "--noplot"]).arg(format!("^{}/", row.name));
            run(cargo.env("CRITERION_HOME", &results))?;
            for contender in row.contenders {
                let nanoseconds = estimate(&results.join(row.name).join(contender.name))?;
                self.0.entry(key(row, contender)).or_default().nanoseconds = Some(nanoseconds);
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        // Nobody needs them any more; where they cannot be removed they are left.
        let _ = std::fs::remove_dir_all(results);
        Ok(())
    }

    /// The figure of a contender, its bare one's taken off; `None` if it was not measured.
    pub(crate) fn get(&self, row: &str, contender: &str, figure: Figure) -> Option<f64> {
        let costs = self.costs(row, contender)?;
        let whole = costs.whole(figure)?;
        match costs.bare.filter(|_| figure != Figure::Whole) {
            None => Some(whole),
            Some(bare) => Some(whole - self.costs(row, bare)?.whole(figure)?),
        }
    }

    /// The contender that this one's figures are above of.
    pub(crate) fn bare_of(&self, row: &str, contender: &str) -> Option<&'static str> {
        self.costs(row, contender)?.bare
    }

    /// The names of a row's contenders.
    pub(crate) fn contenders(&self, row: &str) -> Vec<&str> {
        let of_row = self.0.keys().filter(|(of, _)| of == row);
        of_row.map(|(_, contender)| contender.as_str()).collect()
    }

    /// Fails where counts of the two differ by more than a hundredth.
    pub(crate) fn agree_with(&self, other: &Self) -> Result<(), Error> {
        let mut differing = Vec::new();
        for ((row, contender), costs) in &self.0 {
            let again = other.costs(row, contender).and_then(|costs| costs.instructions);
            if let (Some(first), Some(second)) = (costs.instructions, again)
                && (first - second).abs() > 0.01 * first.max(100.0)
            {
                differing.push(format!("{row} {contender}: {first:.1}, then {second:.1}"));
            }
        }
        if differing.is_empty() {
            return Ok(());
        }
        differing.sort_unstable();
        Err(Error::new(format!("instructions that differ:\n{}", differing.join("\n"))))
    }

    fn costs(&self, row: &str, contender: &str) -> Option<&Costs> {
        self.0.get(&(row.into(), contender.into()))
    }
}

impl Costs {
    fn whole(&self, figure: Figure) -> Option<f64> {
        match figure {
            Figure::Instructions | Figure::Whole => self.instructions,
            Figure::Allocations => Some(self.allocations),
            Figure::Kept => Some(self.kept),
            Figure::Size => self.size,
            Figure::Boxed => Some(self.boxed),
            Figure::Nanoseconds => self.nanoseconds,
        }
    }
}

fn key(row: &Row, contender: &Contender) -> (String, String) {
    (row.name.into(), contender.name.into())
}

/// Fails unless every contender does what it is measured for.
pub(crate) fn check() -> Result<(), Error> {
    run(Command::new(counts()?).arg("check")).map(|_| ())
}

/// Counts one contender: allocations in a run by itself, instructions as the difference of two runs
/// under callgrind, one of them with twice as many operations, so that what happens once drops out.
fn count(row: &Row, contender: &Contender) -> Result<Costs, Error> {
    let counts = counts()?;
    let operations = row.operations;
    let arguments =
        |operations: u64| [row.name.into(), contender.name.into(), operations.to_string()];
    let allocated = json(&run(Command::new(&counts).args(arguments(operations)))?.0)?;
    let each = |name: &str| allocated[name].as_f64().map(|all| all / operations as f64);

    let mut costs = Costs { bare: contender.bare, ..Costs::default() };
    costs.allocations = each("allocations").unwrap_or_default();
    costs.kept = each("kept").unwrap_or_default();
    if row.counted {
        let under_callgrind = |operations: u64| {
            let mut valgrind = Command::new("valgrind");
            valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
            collected(&run(valgrind.arg(&counts).args(arguments(operations)))?.1)
        };
        let (once, twice) = (under_callgrind(operations)?, under_callgrind(2 * operations)?);
        costs.instructions = Some((twice - once) / operations as f64);
    }
    Ok(costs)
}

/// The number behind `Collected :` in what callgrind says at the end.
fn collected(said: &str) -> Result<f64, Error> {
    let line = said.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, number)| number.trim().parse().ok())
        .ok_or_else(|| Error::new(format!("callgrind gave no count:\n{said}")))
}

/// The typical time of one operation, as criterion left it.
fn estimate(results: &Path) -> Result<f64, Error> {
    let path = results.join("new/estimates.json");
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
    let median = json(&text)?["median"]["point_estimate"].as_f64();
    median.ok_or_else(|| Error::new(format!("{}: no median", path.display())))
}

fn have_valgrind() -> Result<(), Error> {
    Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().map_err(|error| {
        Error::new(format!(
            "valgrind cannot be run ({error}): instructions are counted with it. Install it, with \
             `apt-get install valgrind` or `dnf install valgrind`; it needs Linux"
        ))
    })?;
    Ok(())
}

/// The binary that holds the contenders, built beside this one.
fn counts() -> Result<PathBuf, Error> {
    let this = std::env::current_exe().map_err(|error| Error::new(error.to_string()))?;
    let counts = this.with_file_name("counts");
    if counts.exists() {
        return Ok(counts);
    }
    Err(Error::new(format!("{} is not built; start `benches/compare`", counts.display())))
}

/// What the command wrote to its two outputs, if it succeeded.
fn run(command: &mut Command) -> Result<(String, String), Error> {
    let output = command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null())
        .output()
        .map_err(|error| Error::new(format!("{command:?}: {error}")))?;
    let [out, said] =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() {
        return Ok((out, said));
    }
    Err(Error::new(format!("{command:?} failed:\n{said}")))
}

fn json(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::new(format!("{error} in {text:?}")))
}

/// Drawn on the standard error, and only on a terminal.
fn progress_bar(length: usize, doing: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}");
    let bar = ProgressBar::new(length as u64).with_message(doing);
    style.map(|style| bar.clone().with_style(style)).unwrap_or(bar)
}
