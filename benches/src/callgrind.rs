//! Counts of one contender: its allocations in a separate run, its instructions under callgrind.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Allocations, Contender, Row, find};

/// Operations before the counts, in which connections are opened, tables filled and generators
/// seeded.
const WARM_UP: u64 = 3;

/// The cost of one operation, with the bare cost included.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counted {
    /// `None` if the row's instructions are not counted.
    pub instructions: Option<f64>,
    /// Allocations and reallocations.
    pub allocations: f64,
    /// Bytes that are in use after the operation.
    pub kept: f64,
}

/// Does `operations` in this process. Returns the number of their allocations and the bytes that they keep, as text.
/// `None` if there is no such row, contender or number.
pub fn count_here(row: &str, contender: &str, operations: &str) -> Option<String> {
    let contender = find(row, contender)?;
    let operations: u64 = operations.parse().ok()?;
    let mut work = (contender.prepare)();
    on_aligned_stack(|| work(WARM_UP));
    let before = Allocations::now();
    on_aligned_stack(|| work(operations));
    let after = Allocations::now();
    let kept = i128::from(after.live) - i128::from(before.live);
    Some(format!("{} {kept}", after.calls - before.calls))
}

/// A cache line.
#[repr(align(64))]
struct Line([u8; 64]);

/// Does the work with each of its stack frames at the same place in a cache line.
///
/// Otherwise the place depends on the lengths of the arguments, of the program's path and of the environment. A
/// `memcpy` of more than 256 bytes takes 12 instructions more or less by the alignment of its destination.
#[inline(never)]
fn on_aligned_stack(work: impl FnOnce()) {
    let line = black_box(Line([0; 64]));
    work();
    black_box(line.0);
}

/// Counts by running `program`, which calls [`count_here`] with row, contender and number.
///
/// Instructions are the difference of two runs, one with twice as many operations. So one-time work
/// drops out.
///
/// # Errors
///
/// A text with the reason, if a run fails or a count is missing.
pub fn count(program: &Path, row: &Row, contender: &Contender) -> Result<Counted, String> {
    let operations = row.operations;
    let arguments = |operations: u64| [row.name.into(), contender.name.into(), operations.to_string()];
    let (allocated, _) = run(Command::new(program).args(arguments(operations)))?;
    let allocated: Vec<f64> = allocated.split_whitespace().flat_map(str::parse).collect();
    let [allocations, kept] = allocated[..] else {
        return Err(format!("not two numbers: {allocated:?}"));
    };
    let each = |all: f64| all / operations as f64;
    let under_callgrind = |operations: u64| {
        let mut valgrind = Command::new("valgrind");
        valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        collected(&run(valgrind.arg(program).args(arguments(operations)))?.1)
    };
    let instructions = match row.counted {
        true => Some((under_callgrind(2 * operations)? - under_callgrind(operations)?) / operations as f64),
        false => None,
    };
    Ok(Counted { instructions, allocations: each(allocations), kept: each(kept) })
}

/// Returns the number behind `Collected :` at the end of callgrind's output.
fn collected(output: &str) -> Result<f64, String> {
    let line = output.lines().find_map(|line| line.split_once("Collected :"));
    line.and_then(|(_, number)| number.trim().parse().ok()).ok_or_else(|| format!("callgrind gave no count:\n{output}"))
}

/// Returns standard output and standard error of the command, if it succeeded.
fn run(command: &mut Command) -> Result<(String, String), String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error} (is valgrind installed?)"))?;
    let [out, errors] = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    match output.status.success() {
        true => Ok((out, errors)),
        false => Err(format!("{command:?} failed:\n{errors}")),
    }
}
