//! Tests of the ranges of settings, of the warnings about unused ones, and of the `Debug` output.

use std::sync::Arc;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind};

/// Sends up to `most` retries.
fn retry(budget: &RetryBudget, destination: &str, now: Duration, most: u32) -> u32 {
    let failure = Failure::new(FailureKind::Server);
    let acquire = || budget.acquire(destination, &failure, now);
    let sent = (0..most).map_while(|_| acquire()).map(|permit| permit.spend());
    u32::try_from(sent.count()).unwrap()
}

#[test]
fn settings_are_clamped_to_their_ranges() {
    let (nan, infinite) = (f64::NAN, f64::INFINITY);
    let ratio = RetryBudget::ratio;
    let (default, cautious, rate) = (|| RetryBudget::percent(10), RetryBudget::cautious, RetryBudget::rate);
    let (for_ratio, for_rate) = (RetryBudget::ratio_for_traffic, RetryBudget::rate_for_traffic);
    let rows = [
        (cautious().capacity(1001.0), cautious().capacity(1000.0)),
        (cautious().capacity(nan), cautious().capacity(2.0)),
        (ratio(nan), ratio(0.000_001)),
        (ratio(0.0), ratio(0.000_001)),
        (ratio(-0.1), ratio(0.000_001)),
        (ratio(1e-7), ratio(0.000_001)),
        (ratio(1.5), ratio(1.0)),
        (ratio(infinite), ratio(1.0)),
        (default().capacity(nan), default().capacity(1.0)),
        (default().capacity(0.5), default().capacity(1.0)),
        (default().capacity(-1.0), default().capacity(1.0)),
        (default().capacity(1e8), default().capacity(1e7)),
        (default().min_per_second(nan), default().min_per_second(0.0)),
        (default().min_per_second(-1.0), default().min_per_second(0.0)),
        (default().min_per_second(1e7), default().min_per_second(1e6)),
        (for_ratio(0.0), for_ratio(0.000_01)),
        (for_ratio(nan), for_ratio(0.000_01)),
        (for_ratio(f64::NEG_INFINITY), for_ratio(0.000_01)),
        (for_ratio(1e9), ratio(0.1).capacity(1e7)),
        (for_rate(-3.0), rate(0.000_001, 1.0)),
        (for_rate(nan), rate(0.000_001, 1.0)),
        (for_rate(1e9), rate(1e6, 1e7)),
        (rate(0.0, 1.0), rate(0.000_001, 1.0)),
        (rate(nan, 1.0), rate(0.000_001, 1.0)),
        (rate(-1.0, 1.0), rate(0.000_001, 1.0)),
        (rate(2e6, 1.0), rate(1e6, 1.0)),
        (rate(1.0, 0.0), rate(1.0, 1.0)),
        (rate(1.0, nan), rate(1.0, 1.0)),
        (rate(1.0, infinite), rate(1.0, 1e7)),
    ];
    for (beyond, end) in rows {
        assert_eq!(format!("{beyond:?}"), format!("{end:?}"));
    }
}

/// A setting that a kind of budget does not have changes nothing, and is reported.
#[test]
fn setting_without_effect_is_reported() {
    let text = |field| format!("`{field}` is set (recommended: unset, because this kind of budget has none)");
    let rows = [
        (RetryBudget::cautious(), RetryBudget::cautious().min_per_second(0.1), "min_per_second"),
        (RetryBudget::rate(10.0, 20.0), RetryBudget::rate(10.0, 20.0).min_per_second(20.0), "min_per_second"),
        (RetryBudget::unlimited(), RetryBudget::unlimited().min_per_second(0.0), "min_per_second"),
        (RetryBudget::unlimited(), RetryBudget::unlimited().capacity(20.0), "capacity"),
    ];
    for (without, with, field) in rows {
        assert_eq!(format!("{with:?}"), format!("{without:?}"));
        assert!(without.validate().is_empty());
        assert_eq!(with.validate().iter().map(ToString::to_string).collect::<Vec<_>>(), [text(field)]);
    }
    let both = RetryBudget::unlimited().capacity(20.0).min_per_second(1.0).shared(true);
    assert_eq!(both.validate().len(), 2);
}

#[test]
fn the_ends_of_every_range_are_legal() {
    for budget in [
        RetryBudget::ratio(0.000_001).capacity(1.0).min_per_second(0.0),
        RetryBudget::ratio(1.0).capacity(1e7).min_per_second(1e6),
        RetryBudget::ratio_for_traffic(0.000_01),
        RetryBudget::ratio_for_traffic(1e7),
        RetryBudget::rate_for_traffic(0.000_01),
        RetryBudget::rate_for_traffic(1e7),
        RetryBudget::rate(1e6, 1e7).max_destinations(65_536),
        RetryBudget::unlimited().shared(true).max_destinations(1),
    ] {
        assert_eq!(retry(&budget, "a", Duration::ZERO, 1), 1);
    }
}

#[test]
fn the_defaults_are_those_of_the_table() {
    let text = "RetryBudget { kind: ratio, ratio: 0.1, capacity: 10.0, min_per_second: 0.01, refusals: 0, \
                destinations: 0, not_full: {} }";
    assert_eq!(format!("{:?}", RetryBudget::percent(10)), text);
    assert_eq!(format!("{:?}", RetryBudget::ratio(0.1)), text);

    let text = "RetryBudget { kind: ratio, ratio: 0.1, capacity: 40.0, min_per_second: 0.01, refusals: 0, \
                destinations: 0, not_full: {} }";
    assert_eq!(format!("{:?}", RetryBudget::ratio_for_traffic(200.0)), text);
    let text = "RetryBudget { kind: rate, per_second: 20.0, burst: 40.0, refusals: 0, \
                destinations: 0, not_full: {} }";
    assert_eq!(format!("{:?}", RetryBudget::rate_for_traffic(200.0)), text);

    // A quiet client's bucket still holds a token.
    assert_eq!(RetryBudget::ratio_for_traffic(1.0).balance("a"), 1.0);
    assert_eq!(RetryBudget::rate_for_traffic(1.0).balance("a"), 1.0);
}

#[test]
fn last_of_shared_and_max_destinations_wins() {
    let budget = RetryBudget::percent(10).max_destinations(2).shared(true);
    retry(&budget, "a", Duration::ZERO, 4);
    assert_eq!((budget.balance("b"), budget.destinations().len()), (6.0, 0));
    let budget = RetryBudget::percent(10).shared(true).max_destinations(2);
    retry(&budget, "a", Duration::ZERO, 4);
    assert_eq!((budget.balance("b"), budget.destinations().len()), (10.0, 1));
}

#[test]
fn a_rate_budget_earns_by_time_alone() {
    for budget in
        [RetryBudget::rate(2.0, 5.0), RetryBudget::rate(2.0, 5.0).shared(true), RetryBudget::rate_for_traffic(25.0)]
    {
        assert_eq!(retry(&budget, "a", Duration::ZERO, 100), 5);
        assert!(budget.is_full(), "a success would change nothing");
        budget.on_success("a", 1);
        assert_eq!(retry(&budget, "a", Duration::ZERO, 100), 0);
    }
    let budget = RetryBudget::rate(2.0, 5.0);
    retry(&budget, "a", Duration::ZERO, 100);
    assert_eq!(retry(&budget, "a", Duration::from_millis(499), 100), 0);
    assert_eq!(retry(&budget, "a", Duration::from_millis(500), 100), 1);
    assert_eq!(retry(&budget, "a", Duration::from_secs(2), 100), 3);
    assert_eq!(retry(&budget, "a", Duration::from_secs(3600), 100), 5, "no more than the burst");
}

#[test]
fn ratio_budget_full_if_every_bucket_is() {
    let budget = RetryBudget::ratio(1.0);
    assert!(budget.is_full());
    retry(&budget, "a", Duration::ZERO, 1);
    retry(&budget, "b", Duration::ZERO, 2);
    budget.on_success("a", 0);
    budget.on_success("b", 1);
    assert!(!budget.is_full());
    assert_eq!(budget.destinations(), [(Arc::from("a"), 10.0), (Arc::from("b"), 9.0)]);
    budget.on_success("b", 0);
    assert!(budget.is_full());
}

#[test]
fn unlimited_budget_grants_and_counts_none() {
    let budget = RetryBudget::unlimited();
    assert_eq!(retry(&budget, "a", Duration::ZERO, 10_000), 10_000);
    budget.on_success("a", 0);
    assert_eq!((budget.balance("a"), budget.refusals()), (f64::INFINITY, 0));
    assert!(budget.is_full() && budget.destinations().is_empty());
    assert_eq!(format!("{budget:?}"), "RetryBudget { kind: unlimited }");
}

#[test]
fn debug_lists_emptiest_buckets_first() {
    let budget = RetryBudget::percent(10).max_destinations(20);
    retry(&budget, "pay.example:443", Duration::ZERO, 3);
    retry(&budget, "api.example:443", Duration::ZERO, 20);
    retry(&budget, "img.example:443", Duration::ZERO, 1);
    for _ in 0..10 {
        budget.on_success("img.example:443", 0);
    }
    assert_eq!(
        format!("{budget:?}"),
        "RetryBudget { kind: ratio, ratio: 0.1, capacity: 10.0, min_per_second: 0.01, refusals: 1, \
         destinations: 3, not_full: {\"api.example:443\": 0.0, \"pay.example:443\": 7.0} }"
    );

    let failure = Failure::new(FailureKind::Server);
    let retry_to = |name: &str| budget.acquire(name, &failure, Duration::ZERO).unwrap().spend();
    for _ in 0..10 {
        budget.on_success("api.example:443", 0);
    }
    let _under_way = ["api.example:443", "pay.example:443"].map(retry_to);
    let _under_way: Vec<_> = (0..20).map(|name| retry_to(&format!("{name}"))).collect();
    let text = format!("{budget:?}");
    assert!(text.contains("destinations: 20, not_full: {\"api.example:443\": 0.0, "), "{text}");
    assert!(text.ends_with("more: 4}, others: 8.0 }"), "{text}");

    let budget = RetryBudget::rate(0.5, 3.0).shared(true);
    retry(&budget, "a", Duration::ZERO, 4);
    assert_eq!(
        format!("{budget:?}"),
        "RetryBudget { kind: rate, per_second: 0.5, burst: 3.0, refusals: 1, balance: 0.0 }"
    );
}

#[test]
fn doubt_is_shown_beside_the_tokens() {
    let busy = Failure::new(FailureKind::Server);
    let budget = RetryBudget::cautious();
    for _ in 0..5 {
        drop(budget.acquire_after_failure("a:443", &busy.into(), Duration::ZERO));
    }
    drop(budget.acquire_after_failure("b:443", &busy.into(), Duration::ZERO).map(|permit| permit.spend()));
    assert_eq!(
        format!("{budget:?}"),
        "RetryBudget { kind: cautious, capacity: 10.0, refusals: 2, destinations: 2, \
         not_full: {\"b:443\": 9.0 with doubt 1, \"a:443\": 10.0 with doubt 5} }"
    );
    assert_eq!(
        format!("{:?}", RetryBudget::default().shared(true).capacity(20.0)),
        "RetryBudget { kind: cautious, capacity: 20.0, refusals: 0, balance: 20.0 }"
    );
}

#[test]
fn it_crosses_threads() {
    fn crosses<T: Send + Sync + Unpin + Clone + 'static>() {}
    crosses::<RetryBudget>();
}
