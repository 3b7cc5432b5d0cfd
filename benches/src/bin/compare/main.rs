//! Measures everything, prints the table as Markdown, and fails when a goal is missed.
//!
//! Lines and goals are in [`goals`]. The table goes to the standard output and, without `--row` and `--no-file`, to
//! `benches/RESULTS.md`; progress and missed goals go to the standard error.

mod build;
mod goals;
mod measure;
mod surroundings;
mod table;

use std::process::ExitCode;

use goals::Line;
use measure::{Error, Figures};

const HELP: &str = "\
usage: benches/compare [--counts] [--no-file] [--twice] [--row NAME]...

  --counts    only counts and sizes: no CPU times, no cold builds
  --no-file   does not write benches/RESULTS.md
  --row NAME  only this row; may be given several times (`counts list` prints the names)
  --twice     counts everything twice and fails where two counts differ by more than 1 %

Prints the table as Markdown; without --row and --no-file it also writes benches/RESULTS.md. Exits with 1
when a goal is missed, with 2 when a figure could not be measured.";

struct Arguments {
    counts: bool,
    no_file: bool,
    twice: bool,
    rows: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = match arguments() {
        Ok(Some(arguments)) => arguments,
        Ok(None) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            eprintln!("error: {error}\n\n{HELP}");
            return ExitCode::from(2);
        }
    };
    match run(&arguments) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Returns `true` if all goals are met.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let wanted = |row: &str| arguments.rows.is_empty() || arguments.rows.iter().any(|name| name == row);
    let lines: Vec<&Line> = goals::lines().filter(|line| wanted(line.row)).collect();
    if let Some(unknown) = arguments.rows.iter().find(|row| !goals::lines().any(|line| line.row == **row)) {
        return Err(Error::new(format!("there is no row {unknown:?}; `counts list` prints them")));
    }

    measure::check()?;
    let mut figures = Figures::counted(&wanted)?;
    if arguments.twice {
        figures.agree_with(&Figures::counted(&wanted)?)?;
    }
    // A failed build or timing must not discard the counts.
    let slow = if arguments.counts { Ok(()) } else { add_slow(&mut figures, &wanted) };
    let mut text = table::markdown(&lines, &figures);
    for share in table::shares(&figures) {
        text.push_str(&format!("\n{share}\n"));
    }
    text.push_str(&format!("\n{}\n", surroundings::describe()));
    print!("{text}");
    if arguments.rows.is_empty() && !arguments.no_file {
        let command = if arguments.counts { "benches/compare --counts" } else { "benches/compare" };
        write_results(command, &text)?;
    }

    slow?;
    let absent = table::absent(&lines, &figures, arguments.counts);
    if !absent.is_empty() {
        return Err(Error::new(format!("not measured:\n{}", absent.join("\n"))));
    }
    for goal in table::without_air(&lines, &figures) {
        eprintln!("met, without 3 % of air: {goal}");
    }
    let missed = table::missed(&lines, &figures);
    for goal in &missed {
        eprintln!("missed: {goal}");
    }
    Ok(missed.is_empty())
}

fn add_slow(figures: &mut Figures, wanted: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    figures.add_times(wanted)?;
    build::measure(figures, wanted)
}

fn write_results(command: &str, text: &str) -> Result<(), Error> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/RESULTS.md");
    let page = format!(
        "# Results\n\nWritten by `{command}`; [README.md](README.md) explains each row. Figures are for one \
         operation, above the bare contender of the row.\n{text}"
    );
    std::fs::write(path, page).map_err(|error| Error::new(format!("{path}: {error}")))
}

/// Parses the arguments; returns `None` after printing the help.
fn arguments() -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { counts: false, no_file: false, twice: false, rows: Vec::new() };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--counts" => arguments.counts = true,
            "--no-file" => arguments.no_file = true,
            "--twice" => arguments.twice = true,
            "--row" => arguments.rows.push(given.next().ok_or("--row needs a name")?),
            "--help" | "-h" => return Ok(None),
            unknown => return Err(format!("unknown argument {unknown:?}")),
        }
    }
    Ok(Some(arguments))
}
