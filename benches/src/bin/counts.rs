//! Runs one contender for callgrind, or counts its allocations.
//!
//! | command | what it does |
//! |---|---|
//! | `counts ROW CONTENDER N` | prepares, warms up, does N operations; prints what they allocated, as JSON |
//! | `counts size` | prints the size of each contender's future, as JSON |
//! | `counts check` | fails unless each contender does what it is measured for |
//! | `counts list` | prints the rows and contenders |
//! | `counts serve` | the server behind the wire rows: prints its port, runs until its input ends |

use std::process::ExitCode;

use reattempt_benches::{Allocations, Counting, check, find, rows, serve, sizes};
use serde_json::json;

#[global_allocator]
static COUNTING: Counting = Counting;

/// Connections are opened, tables filled and generators seeded by then.
const WARM_UP: u64 = 3;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve"] => serve(),
        ["check"] => check(),
        ["size"] => println!("{}", json!(sizes())),
        ["list"] => list(),
        [row, contender, operations] => {
            let (Some(contender), Ok(operations)) = (find(row, contender), operations.parse())
            else {
                eprintln!("no such row, contender or number; `counts list` prints them");
                return ExitCode::FAILURE;
            };
            let mut work = (contender.prepare)();
            work(WARM_UP);
            let before = Allocations::now();
            work(operations);
            let after = Allocations::now();
            let grown = i128::from(after.live) - i128::from(before.live);
            println!(
                "{}",
                json!({
                    "operations": operations,
                    "allocations": after.calls - before.calls,
                    "bytes": after.bytes - before.bytes,
                    "kept": i64::try_from(grown).unwrap_or(i64::MAX),
                })
            );
        }
        _ => {
            eprintln!("usage: counts ROW CONTENDER N | size | check | list | serve");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn list() {
    for row in rows() {
        println!("{} ({}), {} operations", row.name, row.title, row.operations);
        for contender in row.contenders {
            println!("    {}", contender.name);
        }
    }
}
