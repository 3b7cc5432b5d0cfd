//! Measures everything, prints the table as Markdown, and fails when a goal is missed.
//!
//! What flows in: the lines and goals of [`goals`]. What flows out: the table on the standard
//! output, progress and the goals that were missed on the standard error.

mod goals;
mod measure;
mod surroundings;
mod table;

use std::process::ExitCode;

use goals::Line;
use measure::{Error, Figures};

const HELP: &str = "\
usage: benches/compare [--counts] [--known] [--twice] [--row NAME]...

  --counts    only what is deterministic: instructions, allocations, sizes; no times
  --known     lets pass what is known to be missed, as long as it keeps below its ceiling in goals.rs
  --row NAME  only this row; may be given several times (`counts list` prints the names)
  --twice     counts everything twice and fails where two counts differ by more than 1 %

Prints the table as Markdown. Exits with 1 when a goal is missed, with 2 when something could not be
measured.";

struct Arguments {
    times: bool,
    known: bool,
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

/// Whether all goals are met.
fn run(arguments: &Arguments) -> Result<bool, Error> {
    let wanted =
        |row: &str| arguments.rows.is_empty() || arguments.rows.iter().any(|name| name == row);
    let lines: Vec<&Line> = goals::LINES.iter().filter(|line| wanted(line.row)).collect();
    if let Some(unknown) =
        arguments.rows.iter().find(|row| !goals::LINES.iter().any(|line| line.row == **row))
    {
        return Err(Error::new(format!("there is no row {unknown:?}; `counts list` prints them")));
    }

    measure::check()?;
    let mut figures = Figures::counted(&wanted)?;
    if arguments.twice {
        figures.agree_with(&Figures::counted(&wanted)?)?;
    }
    if arguments.times {
        figures.add_times(&wanted)?;
    }
    print!("{}", table::markdown(&lines, &figures));
    println!("\n{}", surroundings::describe());

    let missed = table::missed(&lines, &figures);
    for goal in &missed {
        let known = if goal.known { "missed, as is known" } else { "missed" };
        eprintln!("{known}: {}", goal.what);
    }
    Ok(missed.iter().all(|goal| arguments.known && goal.known))
}

/// What was asked for, or `None` if that was help.
fn arguments() -> Result<Option<Arguments>, String> {
    let mut arguments = Arguments { times: true, known: false, twice: false, rows: Vec::new() };
    let mut given = std::env::args().skip(1);
    while let Some(argument) = given.next() {
        match argument.as_str() {
            "--counts" => arguments.times = false,
            "--known" => arguments.known = true,
            "--twice" => arguments.twice = true,
            "--row" => arguments.rows.push(given.next().ok_or("--row needs a name")?),
            "--help" | "-h" => return Ok(None),
            unknown => return Err(format!("unknown argument {unknown:?}")),
        }
    }
    Ok(Some(arguments))
}
