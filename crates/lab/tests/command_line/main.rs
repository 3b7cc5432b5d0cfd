//! The command line: exit codes, error texts, pipes, colours.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

mod balancing;
mod checking;
mod connecting;
mod diagnosing;
mod explaining;
mod flags;
mod getting;
mod guarding;
mod pacing;
mod paging;
mod picturing;
mod planning;
mod replaying;
mod sizing;
mod storming;

use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab"));
    command.args(arguments).env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    ended(lab(arguments).output().unwrap())
}

fn ended(output: Output) -> (i32, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const SMALL: [&str; 5] = ["contention", "--clients", "1,5", "--runs", "2"];

fn small(more: &[&str]) -> (i32, String, String) {
    run(&[&SMALL, more].concat())
}

/// Runs the command with this text on its standard input.
fn run_with(arguments: &[&str], input: &str) -> (i32, String, String) {
    let mut child = lab(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // A command that refuses its arguments ends without reading.
    match child.stdin.take().unwrap().write_all(input.as_bytes()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.unwrap(),
    }
    ended(child.wait_with_output().unwrap())
}

/// Returns the path of a temporary file.
fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Returns the line that a command prints for a file that it wrote.
fn wrote(path: &Path) -> String {
    format!("wrote {}\n", path.display())
}

#[test]
fn command_prints_a_table_or_json() {
    let (code, text, errors) = small(&[]);
    assert_eq!((code, &*errors), (0, ""));
    assert!(text.contains("clients  none  exponential"), "{text}");
    let (code, text, errors) = small(&["--json", "--seed", "7"]);
    assert_eq!((code, &*errors), (0, ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["seed"], 7);
    assert_eq!(document["courses"][3]["schedule"], "full");
    assert_eq!(document["courses"][3]["points"][0]["calls"], 1.0);
}

#[test]
fn the_seed_decides_over_every_figure() {
    let json = |seed| small(&["--json", "--seed", seed]).1;
    assert_eq!(json("3"), json("3"));
    assert_ne!(json("3").replace("\"seed\":3", ""), json("4").replace("\"seed\":4", ""));
}

#[test]
fn pictures_of_both_kinds() {
    let (svg, png) = (scratch("contention.svg"), scratch("contention.png"));
    let (code, _, errors) = small(&["--plot", svg.to_str().unwrap(), "--plot", png.to_str().unwrap()]);
    assert_eq!((code, errors), (0, wrote(&svg) + &wrote(&png)));
    assert!(std::fs::read_to_string(svg).unwrap().contains("decorrelated"));
    assert!(std::fs::read(png).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn failed_command_exits_with_2_and_a_reason() {
    for (arguments, text) in [
        (&["--plot", "x.jpg"][..], "the file's name must end in .svg or .png"),
        (&["--clients", "0"], "0 is not in 1..=100000"),
        (&["--base", "5"], "time unit needed"),
        (&["--base", "3s"], "error: `cap` must be at least the base delay, but it is 2s"),
        (&["--sede", "1"], "a similar argument exists: '--seed'"),
        (&["--plot", "no/such/place.svg"], "error: cannot write no/such/place.svg: No such file"),
    ] {
        let (code, _, errors) = small(arguments);
        assert_eq!(code, 2, "{arguments:?}: {errors}");
        assert!(errors.contains(text), "{arguments:?}: {errors}");
    }
    let (code, _, errors) = run(&[]);
    assert_eq!(code, 2);
    assert!(errors.contains("Usage: lab"), "{errors}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = lab(&SMALL).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let mut errors = String::new();
    child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!((child.wait().unwrap().code(), &*errors), (Some(0), ""));
}

#[test]
fn colours_where_they_are_wanted_only() {
    let wrong = &[&SMALL[..], &["--base", "3s"]].concat();
    let errors = |name: &str, value: &str| {
        let output = lab(wrong).env(name, value).output().unwrap();
        ended(output).2
    };
    assert!(!errors("TERM", "xterm").contains('\x1b'), "it is no terminal");
    assert!(errors("CLICOLOR_FORCE", "1").contains("\x1b["));
    assert!(!errors("NO_COLOR", "1").contains('\x1b'));
}
