//! Tests of the parts of the shared budget and the shared limit in a snapshot.

use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_core::guard::{Admit, Arrival, Guard};
use reattempt_core::snapshot::Inspect;
use reattempt_fleet::rate::{FleetRateLimit, Rate};
use reattempt_fleet::{FleetBudget, MemoryStore};
use tokio::time::{advance, sleep};

use crate::support::{Faulty, ask, confirmed};

/// A process whose store fails sends no retry for 5 to 10 s, which the page shows.
#[tokio::test(start_paused = true)]
async fn budget_shows_a_failing_store() {
    let budget = FleetBudget::new(Faulty::down()).prefix("shop");
    let page = || budget.inspect(Duration::ZERO);
    let works = "fleet_budget: prefix shop, patience 50ms, store_fails false, asked 0, granted 0, refused 0, \
                 remembered 0, alone 0, withheld 0, late 0, failed 0, round_trip 0s\n  \
                 budget local: rule cautious, capacity 10, refusals 0\n";
    assert_eq!(page().to_string(), works);
    assert!(!confirmed(&ask(&budget, "a").unwrap()).await);
    let text = page().to_string();
    let left = text.split_once("store_fails true, withheld_for ").unwrap().1.split_once('s').unwrap().0;
    assert!((5.0..=10.0).contains(&left.parse::<f64>().unwrap()), "{text}");
    assert!(text.contains("asked 1,") && text.contains("withheld 1,") && text.contains("failed 1,"), "{text}");
    assert!(text.contains("\n    destination a: tokens 10, doubt 1\n"), "{text}");
    advance(Duration::from_secs(10)).await;
    assert!(page().to_string().contains("store_fails true, asked"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn rate_limit_shows_tokens_and_waiting() {
    let local = RateLimit::new(Limit::per_second(1), 2);
    let rate = Rate::new(10.try_into().unwrap(), 20.try_into().unwrap());
    let limit = FleetRateLimit::new(MemoryStore::new(), rate, local).prefix("shop");
    let waiting = limit.admit(&Arrival::new("a", Duration::from_secs(1)));
    assert!(matches!(waiting, Admit::Waiting(_)));
    sleep(Duration::from_millis(10)).await;
    let text = limit.inspect(Duration::from_secs(1)).to_string();
    let expected = "fleet_rate_limit: prefix shop, per_second 10, burst 20, store_fails false, asked 1, granted 1, alone 0, \
                    late 0, failed 0\n  destination a: tokens 1, waiting 1\n  \
                    rate_limit local: per_second 1, burst 2, queue 1024, longest_wait 30s\n";
    assert_eq!(text, expected);
}
