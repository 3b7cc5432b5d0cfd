//! The figures of `lab budgets` compared with the rules of the budgets.
//!
//! Each attempt succeeds with probability q = 1 − p and then ends its call. So the share of success
//! is q times the attempts for each call: success = q (1 + R), where R is the number of retries for
//! each call. In the long run R follows from the income and the costs of a bucket.

use std::time::Duration;

use super::super::budgets::{Budgets, Case};

fn cases(calls: u32, seconds: u64) -> Vec<Case> {
    let failure_rates = vec![0.1, 0.3, 0.5, 1.0];
    let duration = Duration::from_secs(seconds);
    let budgets = Budgets { policies: Vec::new(), file: None, failure_rates, burst: None, calls, duration };
    budgets.cases(1).unwrap()
}

/// Returns the retries for each call if only the three attempts limit them.
fn wanted(p: f64) -> f64 {
    p + p * p
}

fn check(case: &Case, retries: f64, tolerance: f64) {
    let q = 1.0 - case.failure_rate;
    let (load, success) = (case.load_later, case.success_later);
    let what = format!("{case:?}, expected {retries} retries");
    assert!((load - (1.0 + retries)).abs() < tolerance, "{what}");
    assert!((success - q * (1.0 + retries)).abs() < tolerance, "{what}");
}

/// Ratio: R = ratio · success. Rate: a tenth of the calls. Quota: 5 R = q + 5 q R, because a retry costs 5, an
/// immediate success gives 1, and one after retries gives 5. Throttle: from one failure in eleven on, failures take
/// more than successes give. Cautious: a failed retry costs 1 and a success gives 0.2, so p R = 0.2 success. After
/// several failures in a row some are not retried. R is never above the retries that the attempts allow.
#[test]
fn one_busy_client() {
    for case in cases(500, 60).into_iter().filter(|case| case.clients == 1) {
        let p = case.failure_rate;
        let q = 1.0 - p;
        let retries = match &*case.budget {
            "none" => wanted(p),
            "ratio" | "ratio for rate" => 0.1 * q / (1.0 - 0.1 * q),
            "rate" => 0.1,
            "AWS quota" => q / (5.0 * p),
            "cautious" if p == 0.3 => {
                let load = case.load_later - 1.0;
                assert!((0.9 * wanted(p)..wanted(p)).contains(&load), "{case:?}");
                continue;
            }
            "cautious" => 0.2 * q / (p - 0.2 * q).max(0.0),
            "gRPC throttle" if p == 0.1 => continue,
            "gRPC throttle" => 0.0,
            budget => panic!("{budget}"),
        };
        check(&case, retries.min(wanted(p)), 0.015);
    }
}

/// Clients of one call a second also have the trickle: R = ratio · success + trickle. A bucket of
/// one token that only time fills is full after 10 s under a rate of a tenth, and after 100 s by
/// the trickle. It is spent a second later, at the next failure.
#[test]
fn quiet_clients() {
    for case in cases(100, 600).into_iter().filter(|case| case.clients > 1) {
        let p = case.failure_rate;
        let q = 1.0 - p;
        let retries = match (&*case.budget, p) {
            ("none", _) => wanted(p),
            ("ratio", _) => (0.1 * q + 0.01) / (1.0 - 0.1 * q),
            ("ratio for rate", 1.0) => 1.0 / 101.0,
            ("rate", 1.0) => 1.0 / 11.0,
            ("AWS quota", 1.0) => 0.0,
            ("gRPC throttle", 0.3 | 0.5 | 1.0) => 0.0,
            _ => continue,
        };
        // If no bucket is ever full, the tolerance must be below the trickle of a hundredth.
        let exact = case.budget.starts_with("ratio") && p > 0.1;
        let tolerance = if exact { 0.005 } else { 0.015 };
        check(&case, retries.min(wanted(p)), tolerance);
    }
}
