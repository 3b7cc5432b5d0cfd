//! The figures: instructions by callgrind, allocations by counting, CPU times by turns.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use indicatif::{ProgressBar, ProgressStyle};
use reattempt_benches::{Contender, Row, rows};
use serde_json::Value;

use crate::goals::Figure;

/// The reason why a measurement failed.
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

/// The figures of one contender for each operation, with the bare cost included.
#[derive(Debug, Clone, Default)]
struct Costs {
    bare: Option<&'static str>,
    values: HashMap<Figure, f64>,
}

/// All measured figures, by row and contender.
#[derive(Debug, Default)]
pub(crate) struct Figures(HashMap<(String, String), Costs>);

impl Figures {
    /// Counts the wanted rows, on all processors at once.
    pub(crate) fn counted(wanted: &dyn Fn(&str) -> bool) -> Result<Self, Error> {
        let mut jobs: Vec<(&Row, &Contender)> = rows()
            .filter(|row| wanted(row.name))
            .flat_map(|row| row.contenders.iter().map(move |contender| (row, contender)))
            .collect();
        // The last rows take longest; starting with them keeps all processors busy to the end.
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
                    while let Some((row, contender)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
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
        if wanted("size") || wanted("retry-size") {
            figures.add_sizes()?;
        }
        Ok(figures)
    }

    fn add_sizes(&mut self) -> Result<(), Error> {
        let sizes = json(&run(Command::new(counts()?).arg("size"))?.0)?;
        for entry in sizes.as_array().into_iter().flatten() {
            let (Some(row), Some(name), Some(size), Some(boxed)) =
                (entry[0].as_str(), entry[1].as_str(), entry[2].as_f64(), entry[3].as_f64())
            else {
                return Err(Error::new(format!("not a size: {entry}")));
            };
            let values = [(Figure::Size, size), (Figure::Boxed, boxed)];
            self.put(row, name, None, &values);
        }
        Ok(())
    }

    /// Times the wanted rows, one after the other.
    pub(crate) fn add_times(&mut self, wanted: &dyn Fn(&str) -> bool) -> Result<(), Error> {
        let timed: Vec<&Row> = rows().filter(|row| row.timed && wanted(row.name)).collect();
        let progress = progress_bar(timed.len(), "timing");
        for row in &timed {
            let times = json(&run(Command::new(counts()?).args(["times", row.name]))?.0)?;
            for time in times.as_array().into_iter().flatten() {
                let (Some(name), Some(time)) = (time[0].as_str(), time[1].as_f64()) else {
                    return Err(Error::new(format!("not a time: {time}")));
                };
                let bare = row.contenders.iter().find(|contender| contender.name == name);
                let bare = bare.and_then(|contender| contender.bare);
                self.put(row.name, name, bare, &[(Figure::Time, time)]);
            }
            progress.inc(1);
        }
        progress.finish_and_clear();
        Ok(())
    }

    /// Adds the figures of a contender.
    pub(crate) fn put(&mut self, row: &str, contender: &str, bare: Option<&'static str>, values: &[(Figure, f64)]) {
        let costs = self.0.entry((row.into(), contender.into())).or_default();
        costs.bare = bare;
        costs.values.extend(values.iter().copied());
    }

    /// Returns a figure of a contender above its bare one; `None` if it was not measured.
    pub(crate) fn get(&self, row: &str, contender: &str, figure: Figure) -> Option<f64> {
        let costs = self.costs(row, contender)?;
        let whole = costs.whole(figure)?;
        match costs.bare.filter(|_| figure != Figure::Whole) {
            None => Some(whole),
            Some(bare) => Some(whole - self.costs(row, bare)?.whole(figure)?),
        }
    }

    /// Returns the names of a row's contenders.
    pub(crate) fn contenders(&self, row: &str) -> Vec<&str> {
        let of_row = self.0.keys().filter(|(of, _)| of == row);
        of_row.map(|(_, contender)| contender.as_str()).collect()
    }

    /// Fails if two counts differ by more than a hundredth.
    pub(crate) fn agree_with(&self, other: &Self) -> Result<(), Error> {
        let mut differing = Vec::new();
        for ((row, contender), costs) in &self.0 {
            let again = other.costs(row, contender).and_then(|costs| costs.whole(Figure::Instructions));
            if let (Some(first), Some(second)) = (costs.whole(Figure::Instructions), again)
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
        let kept_as = if figure == Figure::Whole { Figure::Instructions } else { figure };
        self.values.get(&kept_as).copied()
    }
}

fn key(row: &Row, contender: &Contender) -> (String, String) {
    (row.name.into(), contender.name.into())
}

/// Fails unless every contender does its job.
pub(crate) fn check() -> Result<(), Error> {
    run(Command::new(counts()?).arg("check")).map(|_| ())
}

/// Counts one contender.
fn count(row: &Row, contender: &Contender) -> Result<Costs, Error> {
    let counted = reattempt_benches::count(&counts()?, row, contender).map_err(Error::new)?;
    let mut values = HashMap::from([(Figure::Allocations, counted.allocations), (Figure::Saved, counted.kept)]);
    values.extend(counted.instructions.map(|instructions| (Figure::Instructions, instructions)));
    Ok(Costs { bare: contender.bare, values })
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

/// Returns the path of the binary `counts`, which is built beside this one.
fn counts() -> Result<PathBuf, Error> {
    let this = std::env::current_exe().map_err(|error| Error::new(error.to_string()))?;
    let counts = this.with_file_name("counts");
    if counts.exists() {
        return Ok(counts);
    }
    Err(Error::new(format!("{} is not built; start `benches/compare`", counts.display())))
}

/// Returns standard output and standard error of the command, if it succeeded.
pub(crate) fn run(command: &mut Command) -> Result<(String, String), Error> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| Error::new(format!("{command:?}: {error}")))?;
    let [out, said] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    if output.status.success() {
        return Ok((out, said));
    }
    Err(Error::new(format!("{command:?} failed:\n{said}")))
}

fn json(text: &str) -> Result<Value, Error> {
    serde_json::from_str(text).map_err(|error| Error::new(format!("{error} in {text:?}")))
}

/// Draws a bar on standard error, on a terminal only.
fn progress_bar(length: usize, doing: &'static str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {elapsed}");
    let bar = ProgressBar::new(length as u64).with_message(doing);
    style.map(|style| bar.clone().with_style(style)).unwrap_or(bar)
}
