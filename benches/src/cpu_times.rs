//! CPU times of the contenders of one row, interleaved in one process.
//!
//! Only ratios within one run are meaningful: the machine is shared and its clock rate varies.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{Row, Work};

/// The number of rounds; their lowest decile counts.
const ROUNDS: usize = 50;

/// The least time one contender takes in one round.
const SLICE: Duration = Duration::from_millis(10);

/// Returns the CPU time of one operation of each contender in nanoseconds, all threads included.
pub fn cpu_times(row: &Row) -> Vec<(&'static str, f64)> {
    let mut works: Vec<(Work, u64)> = row
        .contenders
        .iter()
        .map(|contender| {
            let mut work = (contender.prepare)();
            work(row.operations);
            let operations = enough(&mut work, row.operations);
            (work, operations)
        })
        .collect();
    let mut times = vec![Vec::with_capacity(ROUNDS); works.len()];
    for _ in 0..ROUNDS {
        for ((work, operations), times) in works.iter_mut().zip(&mut times) {
            times.push(time(work, *operations).as_nanos() as f64 / *operations as f64);
        }
    }
    let lowest_decile = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 10]
    };
    let names = row.contenders.iter().map(|contender| contender.name);
    names.zip(times.into_iter().map(lowest_decile)).collect()
}

/// Returns the number of operations that take a slice.
fn enough(work: &mut Work, mut operations: u64) -> u64 {
    while time(work, operations) < SLICE {
        operations *= 2;
    }
    operations
}

fn time(work: &mut Work, operations: u64) -> Duration {
    let before = now();
    work(operations);
    now().saturating_sub(before)
}

/// Returns the CPU time of this process so far.
fn now() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let [seconds, nanoseconds] =
        [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap());
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}
