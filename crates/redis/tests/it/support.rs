//! Short helpers for retries against a budget.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt_core::{Budget, Failure, FailureKind, Permit};
use reattempt_redis::{BudgetStore, FleetBudget, RedisStore};
use tokio::time::{sleep, timeout};

/// The longest time that a test waits for anything.
const BOUND: Duration = Duration::from_secs(20);

pub(crate) const TOKEN: u64 = 1_000_000;

/// The key of the destination `a`.
pub(crate) const KEY: &str = "reattempt:2:a";

/// Returns a budget with the longest patience, so that a busy machine is not mistaken for a fault.
pub(crate) fn budget(url: &str) -> FleetBudget {
    patient(RedisStore::new(url).unwrap())
}

pub(crate) fn patient(store: RedisStore) -> FleetBudget {
    let budget = FleetBudget::new(store).patience(Duration::from_secs(1));
    // A process without a success needs a full bucket.
    budget.on_success("a", 0);
    budget
}

/// Requests a retry, which the local budget grants.
pub(crate) fn ask(budget: &FleetBudget) -> Option<Permit> {
    (0..5).for_each(|_| budget.local().on_success("a", 0));
    budget.acquire_after_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO)
}

/// Waits for the answer as a driver does. The budget limits the wait.
pub(crate) async fn confirmed(permit: &Permit) -> bool {
    timeout(BOUND, std::future::poll_fn(|cx| permit.poll_confirmed(cx))).await.unwrap()
}

/// Requests a retry, and waits for the answer.
pub(crate) async fn retry(budget: &FleetBudget) -> bool {
    let Some(permit) = ask(budget) else { return false };
    let confirmed = confirmed(&permit).await;
    if confirmed {
        drop(permit.spend());
    }
    confirmed
}

/// Requests retries during a fault: each is refused, because no retry of this process has succeeded before (FB-1).
pub(crate) async fn retries_withheld(budget: &FleetBudget) {
    let before = budget.stats();
    for _ in 0..20 {
        assert!(!retry(budget).await, "{budget:?}");
    }
    let after = budget.stats();
    assert_eq!(after.withheld - before.withheld, 20, "{after:?}");
    assert_eq!(after.granted, before.granted, "{after:?}");
}

/// Sends retries until the store answers again.
pub(crate) async fn returns(budget: &FleetBudget) {
    let before = budget.stats().granted + budget.stats().refused;
    let returned = async {
        while budget.stats().granted + budget.stats().refused == before {
            retry(budget).await;
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(BOUND, returned).await.unwrap();
}

/// Takes all tokens from the bucket of `a`. Returns how many there were.
pub(crate) async fn empty(store: &RedisStore) -> u32 {
    let mut taken = 0;
    while store.settle(KEY, 0, TOKEN, 0).await.unwrap() {
        taken += 1;
        assert!(taken < 1000);
    }
    taken
}

/// Returns a budget and the texts of all its events, in which a test looks for secrets.
pub(crate) fn logged(url: &str) -> (FleetBudget, Arc<Mutex<String>>) {
    logged_by(RedisStore::new(url).unwrap())
}

pub(crate) fn logged_by(store: RedisStore) -> (FleetBudget, Arc<Mutex<String>>) {
    let log = Arc::new(Mutex::new(String::new()));
    let texts = Arc::clone(&log);
    let budget = patient(store).on_event(move |destination, event| {
        let mut log = texts.lock().unwrap();
        log.push_str(&format!("{destination} {event:?}\n"));
        if let reattempt_redis::FleetEvent::Failed { error } = event {
            log.push_str(&format!("{error}\n"));
        }
    });
    (budget, log)
}
