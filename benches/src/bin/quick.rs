//! Prints instructions and allocations of a few rows, without the table, the goals and most peers.
//!
//! `quick ROW…` counts these rows; `quick` and `quick all` count each row of this build. It starts itself under
//! callgrind as `quick ROW CONTENDER N`.

use std::collections::HashMap;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use reattempt_benches::{Counted, Counting, Row, count, count_here, rows};

#[global_allocator]
static COUNTING: Counting = Counting;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [row, contender, operations] = &arguments[..]
        && let Some(counted) = count_here(row, contender, operations)
    {
        println!("{counted}");
        return ExitCode::SUCCESS;
    }
    let known: Vec<&str> = rows().map(|row| row.name).collect();
    if let Some(unknown) = arguments.iter().find(|row| *row != "all" && !known.contains(&row.as_str())) {
        eprintln!("no row {unknown:?}; there are: {}", known.join(" "));
        return ExitCode::FAILURE;
    }
    let all = arguments.is_empty() || arguments.iter().any(|row| row == "all");
    let rows: Vec<&Row> = rows().filter(|row| all || arguments.iter().any(|name| name == row.name)).collect();
    match counted(&rows) {
        Ok(counted) => {
            print(&rows, &counted);
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

type Key = (&'static str, &'static str);

/// Counts on all processors at once.
fn counted(rows: &[&'static Row]) -> Result<HashMap<Key, Counted>, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let jobs: Vec<_> =
        rows.iter().flat_map(|row| row.contenders.iter().map(move |contender| (*row, contender))).collect();
    let results = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((row, contender)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let counted = count(&program, row, contender);
                    if let Ok(mut results) = results.lock() {
                        results.push(counted.map(|counted| ((row.name, contender.name), counted)));
                    }
                }
            });
        }
    });
    let results = results.into_inner().map_err(|_| "a count panicked")?;
    results.into_iter().collect()
}

/// Prints one line for each contender: the cost above that of its bare one.
fn print(rows: &[&Row], counted: &HashMap<Key, Counted>) {
    println!(
        "{:12} {:22} {:>12} {:>7}   (each above its bare contender)",
        "row", "contender", "instructions", "allocs"
    );
    for row in rows {
        for contender in row.contenders {
            let Some(own) = counted.get(&(row.name, contender.name)) else { continue };
            let bare = contender.bare.and_then(|bare| counted.get(&(row.name, bare)));
            let bare = bare.copied().unwrap_or_default();
            let instructions = own.instructions.unwrap_or_default() - bare.instructions.unwrap_or_default();
            let allocations = own.allocations - bare.allocations;
            println!("{:12} {:22} {instructions:>12.1} {allocations:>7.2}", row.name, contender.name);
        }
    }
}
