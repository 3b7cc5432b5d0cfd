//! Runs one contender for callgrind, or counts its allocations.
//!
//! | command | effect |
//! |---|---|
//! | `counts ROW CONTENDER N` | prepares, warms up, does N operations; prints their allocations and the bytes kept |
//! | `counts times ROW` | prints the CPU time of an operation of each contender, which take turns, as JSON |
//! | `counts size` | prints the size of each contender's future, as JSON |
//! | `counts check` | fails unless each contender does what it is measured for |
//! | `counts list` | prints the rows and contenders |
//! | `counts serve` | the server behind the wire rows: prints its port, runs until its input ends |

use std::process::ExitCode;

use reattempt_benches::{Counting, Sized, check, count_here, cpu_times, rows, serve, sizes};
use serde_json::{Value, json};

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["serve"] => serve(),
        ["check"] => check(),
        ["times", name] => match rows().find(|row| row.name == name) {
            Some(row) => {
                println!("{}", Value::from_iter(cpu_times(row).into_iter().map(|time| json!(time))))
            }
            None => {
                eprintln!("no such row; `counts list` prints them");
                return ExitCode::FAILURE;
            }
        },
        ["size"] => {
            let each = |size: Sized| json!([size.row, size.contender, size.future, size.boxed]);
            println!("{}", Value::from_iter(sizes().into_iter().map(each)));
        }
        ["list"] => list(),
        [row, contender, operations] => match count_here(row, contender, operations) {
            Some(counted) => println!("{counted}"),
            None => {
                eprintln!("no such row, contender or number; `counts list` prints them");
                return ExitCode::FAILURE;
            }
        },
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
