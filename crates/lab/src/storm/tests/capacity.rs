//! `lab capacity`: more budget never sends fewer attempts, and the recommended budget is the best by its rule.

use std::time::Duration;

use super::super::capacity::{Capacity, Case, Row, best};

fn rows(capacity: f64, clients: u32, rate: Option<f64>, seed: u64) -> Vec<Row> {
    let outage = Duration::from_secs(10);
    Capacity { capacity, clients, rate, outage }.rows(seed).unwrap().0
}

/// The budgets of one kind from none to unlimited send more and more attempts in each scene.
#[test]
fn larger_budget_sends_no_fewer_attempts() {
    for seed in 1..=4 {
        for (capacity, clients, rate) in [(50.0, 200, None), (50.0, 200, Some(0.3)), (100.0, 2, None), (10.0, 5, None)]
        {
            let rows = rows(capacity, clients, rate, seed);
            let sent = ["no retry", "ratio 0.1", "ratio 0.2", "unlimited"].map(|budget| {
                let Row { ordinary, outage, overload, .. } = rows.iter().find(|row| row.budget == budget).unwrap();
                [ordinary, outage, overload].map(|case| case.attempts)
            });
            for scene in 0..3 {
                let attempts = sent.map(|of_budget| of_budget[scene]);
                assert!(attempts.is_sorted(), "{capacity} {clients} {rate:?} {seed}: {attempts:?}");
            }
        }
    }
}

fn row(budget: &str, served: f64, peak: f64, recovery_seconds: Option<usize>) -> Row {
    let case = |peak, served| Case { attempts: 0, peak, served };
    Row {
        budget: budget.to_owned(),
        how: "",
        ordinary: case(1.0, served),
        outage: case(peak, 0.9),
        overload: case(2.0, 0.6),
        recovery_seconds,
    }
}

#[test]
fn lowest_peak_of_good_budgets_is_best() {
    for (others, expected) in [
        (vec![], "first"),
        (vec![row("lower", 0.996, 1.5, Some(3))], "lower"),
        (vec![row("hardly lower", 1.0, 1.91, Some(0))], "first"),
        (vec![row("serves fewer", 0.99, 1.0, Some(0))], "first"),
        (vec![row("never recovers", 1.0, 1.0, None)], "first"),
    ] {
        let rows: Vec<_> = std::iter::once(row("first", 1.0, 2.0, Some(0))).chain(others).collect();
        assert_eq!(best(&rows).budget, expected);
    }
    let lost = [row("first", 1.0, 2.0, None), row("lower", 1.0, 1.0, None)];
    assert_eq!(best(&lost).budget, "lower");
}
