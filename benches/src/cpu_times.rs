//! CPU times of the contenders of one row, interleaved in one process.
//!
//! Only ratios within one run are meaningful: the machine is shared and its clock rate varies. So each time counts as
//! its share of its own round, and the median of the shares is taken. A slow round then counts for all alike.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::{Row, Work};

/// The number of rounds; the median of the shares counts.
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
    let mut rounds = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let per_operation =
            |(work, operations): &mut (Work, u64)| time(work, *operations).as_nanos() as f64 / *operations as f64;
        rounds.push(works.iter_mut().map(per_operation).collect::<Vec<_>>());
    }
    let means: Vec<f64> = rounds.iter().map(|round| round.iter().sum::<f64>() / round.len() as f64).collect();
    let usual_mean = median(means.clone());
    let usual_time = |contender: usize| {
        let shares = rounds.iter().zip(&means).map(|(round, mean)| round[contender] / mean);
        usual_mean * median(shares.collect())
    };
    let names = row.contenders.iter().map(|contender| contender.name);
    names.enumerate().map(|(contender, name)| (name, usual_time(contender))).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
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
    let [seconds, nanoseconds] = [time.tv_sec, time.tv_nsec].map(|part| u64::try_from(part).unwrap());
    Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds)
}
