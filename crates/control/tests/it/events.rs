//! Tests of events: failures of one cause count once, their retries may overdraw the bucket to a bound, and a server
//! that refuses everything is limited by the doubt of its events.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Evidence, Failure, FailureKind, PaidRetry, Permit, Signs, Undone, Verdict};

const START: Duration = Duration::from_secs(1);
const LOST: Failure = Failure::new(FailureKind::Network);
const NOT_CONNECTED: Verdict = Verdict::NotProcessed(Failure::new(FailureKind::Connect));
const TIMED_OUT: Failure = Failure::new(FailureKind::Timeout);

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// Returns the evidence of a connection that was lost under an attempt.
fn lost(sent: Duration) -> Evidence {
    Evidence::from(LOST).sent_at(sent)
}

/// Returns the evidence of a stream that the server refused.
fn refused(sent: Duration) -> Evidence {
    let signs = Signs { undone: Some(Undone::Refused), ..Signs::new(Verdict::NotProcessed(LOST)) };
    Evidence::of(&signs).sent_at(sent)
}

/// Fails this many attempts that were sent at `sent`. Returns the retries.
fn flight(budget: &RetryBudget, calls: usize, sent: Duration, seen: Duration) -> Vec<PaidRetry> {
    let retry = |_| budget.acquire_after_failure("a", &lost(sent), seen).map(Permit::spend);
    (0..calls).filter_map(retry).collect()
}

fn doubt(budget: &RetryBudget) -> String {
    format!("{budget:?}")
}

/// All calls on a connection are repeated. Those beyond the tokens cost 2, which are not returned.
// C-4, C-5, trap 60
#[test]
fn lost_connection_repeats_all_its_calls() {
    let budget = RetryBudget::cautious();
    let retries = flight(&budget, 200, ms(0), START);
    assert_eq!((retries.len(), budget.balance("a")), (200, 10.0 - 10.0 - 2.0 * 190.0));
    for retry in retries {
        retry.succeed();
        budget.on_success("a", 1);
    }
    // Ten retries returned their tokens, and each success earned a fifth.
    assert_eq!(budget.balance("a"), -380.0 + 10.0 + 40.0);
    (0..1_700).for_each(|_| budget.on_success("a", 0));
    assert!(budget.is_full());
}

/// Without the debt's bound, one event could double the load of any client.
// C-5, CI-1, CI-2
#[test]
fn overdraft_ends_at_its_bound() {
    let budget = RetryBudget::cautious();
    assert_eq!(flight(&budget, 10_000, ms(0), START).len(), 10 + 256);
    assert_eq!(budget.balance("a"), -512.0);
    // The next flight is an event of its own, and is not granted until the debt is repaid.
    assert_eq!(flight(&budget, 10, START + ms(1), START + ms(2)).len(), 0);
    (0..2_564).for_each(|_| budget.on_success("a", 0));
    assert_eq!(flight(&budget, 10, START + ms(3), START + ms(4)).len(), 0, "0.8 tokens");
    (0..2).for_each(|_| budget.on_success("a", 0));
    assert_eq!(flight(&budget, 1, START + ms(5), START + ms(6)).len(), 1);
}

/// Two causes that are a millisecond apart are two events, and one that lasts for seconds is one.
// C-4
#[test]
fn time_of_sending_separates_events() {
    let budget = RetryBudget::cautious();
    let fail = |sent, seen| budget.on_failure("a", &lost(sent), seen);
    fail(START, START + ms(10));
    (1..5_000).for_each(|later| fail(START + ms(10), START + ms(10 + later)));
    assert!(doubt(&budget).contains("with doubt 1"), "{budget:?}");
    fail(START + ms(11), START + ms(5_020));
    assert!(doubt(&budget).contains("with doubt 2"), "{budget:?}");
}

/// Members do not extend their event.
// CI-5
#[test]
fn member_changes_neither_doubt_nor_time() {
    let budget = RetryBudget::cautious();
    budget.on_failure("a", &lost(ms(0)), ms(100));
    budget.on_failure("a", &lost(ms(90)), ms(900));
    budget.on_failure("a", &lost(ms(500)), ms(901));
    assert!(doubt(&budget).contains("with doubt 2"), "{budget:?}");
}

// CI-5
#[test]
fn threads_of_one_event_add_one_doubt() {
    let budget = RetryBudget::cautious();
    let barrier = Barrier::new(64);
    let retries: usize = thread::scope(|scope| {
        let fail = || {
            barrier.wait();
            flight(&budget, 1, ms(0), START).len()
        };
        let threads: Vec<_> = (0..64).map(|_| scope.spawn(fail)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((retries, budget.balance("a")), (64, 10.0 - 10.0 - 2.0 * 54.0));
    assert!(doubt(&budget).contains("with doubt 1"), "{budget:?}");
}

/// Without a success, at most three flights are repeated, and only the first one overdraws.
// CI-2
#[test]
fn outage_repeats_three_flights_at_most() {
    for calls in [1, 3, 5, 64] {
        let budget = RetryBudget::cautious();
        let sent = |number: u64| START + ms(10 * number);
        let flights: Vec<_> =
            (0..20).map(|number| flight(&budget, calls, sent(number), sent(number) + ms(5)).len()).collect();
        let total: usize = flights.iter().sum();
        assert!(total <= 10 + calls.min(256), "{calls}: {flights:?}");
        assert!(flights.iter().filter(|retries| **retries > 0).count() <= 3, "{calls}: {flights:?}");
        assert_eq!(flights[0], calls);
    }
}

/// Overload is counted call by call, and a member of an event does not pass as one of it.
#[test]
fn overload_is_never_shared() {
    let budget = RetryBudget::cautious();
    let fail = |evidence: &Evidence| budget.acquire_after_failure("a", evidence, START).map(Permit::spend).is_some();
    let timeout = Evidence::from(TIMED_OUT).sent_at(ms(0));
    assert!(fail(&lost(ms(0))));
    assert!(fail(&timeout));
    // The timeout ended the event, so this loss is a failure of its own.
    assert!(fail(&lost(ms(0))));
    assert!(!fail(&timeout));
    assert!(doubt(&budget).contains("with doubt 4"), "{budget:?}");
}

/// A server that refuses every stream gets no more than three flights twice, whatever limits the retries.
// C-2, CI-3
#[test]
fn refused_streams_are_replaced_three_times() {
    let kinds = [
        RetryBudget::cautious(),
        RetryBudget::percent(20),
        RetryBudget::rate(1.0, 10.0),
        RetryBudget::aws_quota(),
        RetryBudget::ratio(0.1).shared(true),
    ];
    for budget in kinds {
        let refuse = |budget: &RetryBudget, number: u64| {
            let sent = START + ms(10 * number);
            (0..100).filter(|_| budget.on_unprocessed("a", &refused(sent), sent + ms(5))).count()
        };
        let full = budget.balance("a");
        let flights: Vec<_> = (0..10).map(|number| refuse(&budget, number)).collect();
        assert_eq!((&flights[..4], flights[4..].iter().sum::<usize>()), (&[100, 100, 100, 0][..], 0), "{budget:?}");
        assert_eq!(budget.balance("a"), full, "no tokens");
        assert!(!budget.is_full() && !budget.is_full_for("a"), "successes remove the doubt: {budget:?}");
        let other = budget.clone().capacity(5.0).continuing(&budget);
        assert_eq!(refuse(&other, 15), 0, "new settings keep the doubt: {budget:?}");
        (0..6).for_each(|retries| budget.on_success("a", retries));
        assert!(budget.is_full(), "{budget:?}");
        assert_eq!(refuse(&budget, 20), 100, "{budget:?}");
    }
    let unlimited = RetryBudget::unlimited();
    assert!((0..100).all(|_| unlimited.on_unprocessed("a", &refused(START), START + ms(5))), "it limits nothing");
}

/// Moves to another endpoint leave no trace, and end once the doubt exceeds 2.
// C-3, CI-4
#[test]
fn moves_add_no_doubt_and_end_with_it() {
    let budget = RetryBudget::cautious();
    let not_connected = Evidence::from(NOT_CONNECTED).sent_at(START);
    let moves = || budget.on_unprocessed("a", &not_connected, START);
    assert!((0..1_000).all(|_| moves()));
    assert!(budget.is_full());
    let fail = || budget.on_failure("a", &TIMED_OUT.into(), START);
    fail();
    fail();
    assert!(moves());
    fail();
    assert!(!moves());
}

/// A fault of this machine shows nothing about the server, so it adds no doubt.
// trap 62
#[test]
fn local_fault_adds_no_doubt() {
    let budget = RetryBudget::cautious();
    let signs = Signs { fault: Some(reattempt_core::Fault::Local), ..Signs::new(NOT_CONNECTED) };
    let local = Evidence::of(&signs).sent_at(START);
    for _ in 0..100 {
        drop(budget.acquire_after_failure("a", &local, START).expect("a token"));
        budget.on_failure("a", &local, START);
    }
    assert!(budget.is_full());
}

/// A quiet bucket is full again when the next failure is seen, even one that adds no doubt.
#[test]
fn quiet_bucket_is_full_at_local_fault() {
    let budget = RetryBudget::cautious();
    let signs = Signs { fault: Some(reattempt_core::Fault::Local), ..Signs::new(NOT_CONNECTED) };
    let own = Evidence::from(TIMED_OUT);
    budget.on_failure("a", &own, START);
    // This search for quiet buckets is too early for it, and the next one too late.
    budget.on_failure("b", &own, START + Duration::from_secs(595));
    budget.on_failure("a", &Evidence::of(&signs), START + Duration::from_secs(600));
    (0..100).for_each(|_| budget.on_success("b", 0));
    assert_eq!((budget.balance("a"), budget.balance("b")), (10.0, 10.0));
    assert!(budget.is_full());
}

/// A clock that jumps back neither ends nor repeats an event.
#[test]
fn clock_that_jumps_keeps_the_event() {
    let budget = RetryBudget::cautious();
    budget.on_failure("a", &lost(START), START + ms(100));
    budget.on_failure("a", &lost(START), ms(0));
    budget.on_failure("a", &lost(ms(0)), START + Duration::from_secs(500));
    assert!(doubt(&budget).contains("with doubt 1"), "{budget:?}");
    // This attempt was sent after the event, whatever the clock shows at its end.
    budget.on_failure("a", &lost(START + ms(101)), ms(0));
    assert!(doubt(&budget).contains("with doubt 2"), "{budget:?}");
}

/// Debts are kept when the settings of a budget are replaced.
#[test]
fn debt_continues_under_new_settings() {
    let former = RetryBudget::cautious();
    drop(flight(&former, 110, ms(0), START));
    assert_eq!(former.balance("a"), -200.0);
    let budget = RetryBudget::cautious().capacity(50.0).continuing(&former);
    assert_eq!(budget.balance("a"), -200.0);
}
