//! The error text of each flag that has a value.

use super::getting::nobody;
use super::replaying::{RECORDING, recorded};
use super::run;

/// A value that no flag accepts, neither as a number, a time, a name nor a file.
const BAD: &str = "no/such/~";

/// Returns the flags of a command that have a value.
fn flags(command: &str) -> Vec<String> {
    let (_, help, _) = run(&[command, "--help"]);
    let flags = help.lines().filter_map(|line| {
        let line = line.trim_start().strip_prefix('-')?;
        let (_, flag) = line.split_once("--").or_else(|| Some(("", line.strip_prefix('-')?)))?;
        let (name, value) = flag.split_once(' ')?;
        value.starts_with('<').then(|| name.to_owned())
    });
    flags.collect()
}

/// The list of all texts, so that a new flag is not forgotten. A page is written after the work; `paging` has its test.
#[test]
fn each_flag_has_its_error_text() {
    let (_port, url) = nobody();
    let recording = recorded("flags.toml", RECORDING);
    let commands = "plan check doctor get responsive contention breaker limits endpoints connections capacity budgets frontier replay storm";
    let mut found = String::new();
    for command in commands.split(' ') {
        let needed = match command {
            "get" => &[&*url][..],
            "capacity" => &["50"],
            "check" | "replay" => &[&*recording],
            _ => &[],
        };
        for flag in flags(command).into_iter().filter(|flag| flag != "html") {
            let (code, _, errors) = run(&[&[command], needed, &[&format!("--{flag}"), BAD]].concat());
            assert_eq!(code, 2, "{command} --{flag}: {errors}");
            let text = errors.lines().next().unwrap_or_default();
            found.push_str(&format!("{command} --{flag}: {}\n", text.trim_start_matches("error: ")));
        }
    }
    let expected = include_str!("flags.txt");
    assert!(found == expected, "{found}");
}
