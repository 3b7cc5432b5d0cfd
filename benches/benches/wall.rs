//! The wall-clock times of the rows in memory, by criterion: for ratios within one run, not for records.

#![allow(missing_docs, reason = "what criterion's macros make has none")]

use std::time::Duration;

use criterion::{Criterion, criterion_group, criterion_main};
use reattempt_benches::{Work, rows};

/// So many operations as criterion asks for, timed together.
fn time(work: &mut Work, operations: u64) -> Duration {
    #[allow(clippy::disallowed_types, reason = "the wall clock is what is asked for")]
    let start = std::time::Instant::now();
    work(operations);
    start.elapsed()
}

fn all(criterion: &mut Criterion) {
    for row in rows().filter(|row| row.timed) {
        let mut group = criterion.benchmark_group(row.name);
        for contender in row.contenders {
            group.bench_function(contender.name, |bencher| {
                let mut work = (contender.prepare)();
                bencher.iter_custom(|operations| time(&mut work, operations));
            });
        }
        group.finish();
    }
}

/// Two minutes for all of it: the ratios it is for do not gain from more.
fn brief() -> Criterion {
    Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .sample_size(30)
}

criterion_group! {
    name = benches;
    config = brief();
    targets = all
}
criterion_main!(benches);
