//! Tests of the budget with a store, under a paused clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use proptest::prelude::*;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind};
use reattempt_fleet::courier::{Courier, Message};
use reattempt_fleet::rule::{CAPACITY, TOKEN};
use reattempt_fleet::{BudgetStore, FleetBudget, FleetEvent, MemoryStore, Settling};
use tokio::time::{Instant, advance, sleep};

use crate::support::{ByHand, Faulty, SERVER, ask, confirmed, experienced, poll};

/// Clients call a server that answers none of their calls for `seconds`. Fresh ones have had no success before. Returns
/// the number of retries.
async fn outage(clients: usize, fresh: bool, seconds: u64) -> u64 {
    let store = MemoryStore::new();
    let mut sent = 0;
    let new = || FleetBudget::new(store.clone());
    let budgets: Vec<_> = (0..clients).map(|_| if fresh { new() } else { experienced(new()) }).collect();
    for _ in 0..seconds {
        let permits: Vec<_> = budgets.iter().filter_map(|budget| ask(budget, "a")).collect();
        for permit in permits {
            if confirmed(&permit).await {
                drop(permit.spend());
                sent += 1;
            }
        }
        advance(Duration::from_secs(1)).await;
    }
    sent
}

// F-3
#[tokio::test(start_paused = true)]
async fn fleet_in_an_outage_sends_ten_retries() {
    assert_eq!(outage(1, false, 20).await, 3, "one client stops itself");
    for (clients, seconds) in [(100, 20), (10_000, 3)] {
        let sent = outage(clients, false, seconds).await;
        assert!((10..=10 + seconds / 2).contains(&sent), "{clients}: {sent}");
    }
}

/// Processes that have had no success, such as sick ones that restart in a loop, retry from a full bucket only. They
/// leave its last nine tokens to the others, which are granted as many retries as without them.
// FB-2, F-3
#[tokio::test(start_paused = true)]
async fn fresh_processes_leave_nine_tokens() {
    for clients in [1, 100] {
        let sent = outage(clients, true, 20).await;
        assert!((1..=1 + 20 / 2).contains(&sent), "{clients}: {sent}");
    }
    let store = MemoryStore::new();
    let mut sent = 0;
    for _ in 0..100 {
        let permit = ask(&FleetBudget::new(store.clone()), "a").unwrap();
        sent += u64::from(confirmed(&permit).await);
        let _dear = FleetBudget::new(store.clone()).acquire("a", &SERVER, Duration::ZERO);
    }
    assert_eq!(sent, 1);
    let mut granted = 0;
    for _ in 0..20 {
        let permit = ask(&experienced(FleetBudget::new(store.clone())), "a").unwrap();
        granted += u64::from(confirmed(&permit).await);
        std::mem::forget(permit);
    }
    assert_eq!(granted, 9);
}

/// The first 64 successes of a process are recorded by destination. A process with more of them does not restart in a
/// loop, so any destination counts as one with a success.
// FB-2
#[test]
fn success_ends_the_reserve() {
    let least = |successes: u32, of: &str| {
        let hand = ByHand::default();
        let budget = FleetBudget::carried_by(hand.clone());
        for _ in 0..successes {
            assert!(!budget.is_full(), "each of the first successes is recorded");
            budget.on_success(of, 0);
        }
        let _permit = ask(&budget, "a").unwrap();
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        question.amounts().least
    };
    assert_eq!((least(0, "a"), least(1, "b"), least(63, "b")), (CAPACITY, CAPACITY, CAPACITY));
    assert_eq!((least(1, "a"), least(64, "b")), (0, 0));
    let budget = ByHand::default().budget();
    (0..63).for_each(|_| budget.on_success("a", 0));
    assert!(budget.is_full(), "later successes cost nothing");
    // A retry's success counts, too.
    let hand = ByHand::default();
    let budget = FleetBudget::carried_by(hand.clone());
    budget.on_failure("a", &SERVER.into(), Duration::ZERO);
    budget.on_permanent_failure("a", reattempt_core::ServerHint::None, 1);
    hand.take(0);
    let _permit = ask(&budget, "a").unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    assert_eq!(question.amounts().least, 0);
}

/// A process whose retries succeed decides alone as soon as the store fails. Any other refuses retries for 5 to 10 s
/// from the first failure. An answer in time ends this.
// FB-1
#[test]
fn failing_store_withholds_retries_first() {
    for fault in ["fails", "is late"] {
        let hand = ByHand::default();
        let budget = hand.budget();
        let fails = || {
            let Some(Message::Question(question)) = hand.take(0) else { return };
            match fault {
                "fails" => question.answer(Err("no".into())),
                _ => question.is_late(),
            }
        };
        let first = ask(&budget, "a").unwrap();
        fails();
        assert_eq!(poll(&first), Poll::Ready(false), "{fault}");
        let mut sent_at = None;
        for tenth in 1..110 {
            hand.advance(Duration::from_millis(100));
            (0..3).for_each(|_| budget.local().on_success("a", 0));
            let permit = ask(&budget, "a");
            fails();
            let sent = permit.is_some_and(|permit| poll(&permit) == Poll::Ready(true));
            assert!(sent || sent_at.is_none(), "{fault}: it goes on");
            sent_at = sent_at.or(sent.then_some(tenth));
        }
        assert!((50..=100).contains(&sent_at.unwrap()), "{fault}: {sent_at:?}");
        let stats = budget.stats();
        assert_eq!(stats.withheld + stats.alone, 110, "{fault}: {stats:?}");

        // An answer in time, and then a retry that succeeds.
        let retry = || {
            (0..10).for_each(|_| budget.local().on_success("a", 0));
            ask(&budget, "a")
        };
        hand.advance(Duration::from_secs(1));
        let permit = retry().unwrap();
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        question.answer(Ok(true));
        permit.spend().succeed();
        while hand.take(0).is_some() {}
        let permit = retry().unwrap();
        fails();
        assert_eq!(poll(&permit), Poll::Ready(true), "{fault}: its retries succeed");
        hand.advance(Duration::from_millis(1_900));
        let permit = retry().unwrap();
        fails();
        assert_eq!(poll(&permit), Poll::Ready(true));
        // A retry without the store counts, too.
        hand.advance(Duration::from_millis(50));
        retry().unwrap().spend().succeed();
        hand.advance(Duration::from_secs(2));
        let permit = retry().unwrap();
        fails();
        assert_eq!(poll(&permit), Poll::Ready(true));
        hand.advance(Duration::from_millis(1));
        assert!(retry().is_none(), "{fault}: the last success was more than 2 s ago");
    }
}

/// The wait ends with the answer or after the patience.
// F-4
#[tokio::test(start_paused = true)]
async fn outcome_is_held_until_the_answer() {
    for (takes, held) in [(3, 3), (49, 49), (51, 50), (200, 50)] {
        let budget = FleetBudget::new(Faulty::taking(Duration::from_millis(takes)));
        let permit = ask(&budget, "a").unwrap();
        let start = Instant::now();
        assert_eq!(confirmed(&permit).await, takes <= 50);
        assert_eq!(start.elapsed(), Duration::from_millis(held), "{takes}");
        let late = u64::from(takes > 50);
        let stats = budget.stats();
        assert_eq!((stats.asked, stats.granted, stats.late, stats.withheld), (1, 1 - late, late, late));
        assert_eq!(stats.is_too_late(), late > 0);
    }
}

#[test]
fn more_than_a_tenth_of_late_answers_warns() {
    let mut stats = reattempt_fleet::FleetStats::default();
    (stats.asked, stats.late) = (20, 2);
    assert!(!stats.is_too_late());
    stats.late = 3;
    assert!(stats.is_too_late());
}

/// A warning is due if more than two of 20 answers were late, and the count begins anew.
#[test]
fn late_answers_are_warned_of() {
    use std::sync::Mutex;
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let (log, hand) = (Arc::clone(&warnings), ByHand::default());
    let budget = hand.budget().on_event(move |destination, event| {
        if let FleetEvent::LateOften { late } = event {
            log.lock().unwrap().push((destination.to_owned(), *late));
        }
    });
    for (late, warns) in [(2, false), (3, true), (0, false), (20, true)] {
        for number in 0..20 {
            assert_eq!(*warnings.lock().unwrap(), [], "{number}");
            hand.advance(Duration::from_secs(2));
            (0..5).for_each(|_| budget.local().on_success("a", 0));
            let permit = ask(&budget, "a").unwrap();
            let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
            if number < late {
                question.is_late();
            }
            question.answer(Ok(true));
            drop(permit.spend());
        }
        let expected = [("a".to_owned(), late)];
        assert_eq!(std::mem::take(&mut *warnings.lock().unwrap()), if warns { &expected[..] } else { &[] });
    }
}

/// With a patience of zero, only an answer that is there at once counts. An hour counts as a second.
#[tokio::test(start_paused = true)]
async fn extreme_patience_has_a_stated_result() {
    let at_once = FleetBudget::new(MemoryStore::new()).patience(Duration::ZERO);
    assert!(confirmed(&ask(&at_once, "a").unwrap()).await);
    assert_eq!((at_once.stats().granted, at_once.stats().late), (1, 0));

    let budget = FleetBudget::new(Faulty::taking(Duration::from_millis(1))).patience(Duration::ZERO);
    let start = Instant::now();
    assert!(!confirmed(&ask(&budget, "a").unwrap()).await);
    assert_eq!((budget.stats().late, budget.stats().withheld, start.elapsed()), (1, 1, Duration::ZERO));

    let budget = FleetBudget::new(Faulty::taking(Duration::from_secs(7200))).patience(Duration::from_secs(3600));
    assert!(format!("{budget:?}").contains("patience: 1s"), "{budget:?}");
    assert!(!confirmed(&ask(&budget, "a").unwrap()).await);
    assert_eq!(start.elapsed(), Duration::from_secs(1));
}

/// A late grant is not lost, and its retry still earns tokens.
// F-7
#[tokio::test(start_paused = true)]
async fn late_grant_of_a_dropped_retry_returns() {
    let store = Faulty::taking(Duration::from_millis(200));
    let budget = FleetBudget::new(store.clone());
    let permit = ask(&budget, "a").unwrap();
    assert!(!confirmed(&permit).await);
    drop(permit);
    // A late answer counts as a store failure, so unused tokens wait for the next question.
    sleep(Duration::from_secs(2)).await;
    let _next = ask(&budget, "a").unwrap();
    sleep(Duration::from_millis(1)).await;
    assert_eq!(store.messages(), [(0, TOKEN), (TOKEN, TOKEN)]);
}

/// Tokens that a retry earned are sent 10 ms later, without a question.
#[tokio::test(start_paused = true)]
async fn earned_tokens_are_sent_soon() {
    let store = Faulty::taking(Duration::ZERO);
    let budget = FleetBudget::new(store.clone());
    let permit = ask(&budget, "a").unwrap();
    assert!(confirmed(&permit).await);
    permit.spend().succeed();
    sleep(Duration::from_millis(9)).await;
    assert_eq!(store.messages(), [(0, TOKEN)]);
    sleep(Duration::from_millis(2)).await;
    assert_eq!(store.messages(), [(0, TOKEN), (3 * TOKEN, 0)]);
}

// F-4
#[tokio::test(start_paused = true)]
async fn first_attempts_ask_for_nothing() {
    let store = Faulty::taking(Duration::ZERO);
    let budget = FleetBudget::new(store.clone());
    (0..100).for_each(|_| budget.on_success("a", 0));
    sleep(Duration::from_secs(5)).await;
    assert_eq!(store.messages(), []);
}

// F-11
#[tokio::test(start_paused = true)]
async fn store_that_returns_is_asked_again() {
    let store = Faulty::down();
    let budget = FleetBudget::new(store.clone());
    for step in 0..100 {
        if step == 50 {
            store.down.store(false, Ordering::Relaxed);
        }
        (0..3).for_each(|_| budget.local().on_success("a", 0));
        if let Some(permit) = ask(&budget, "a") {
            confirmed(&permit).await;
        }
        sleep(Duration::from_millis(100)).await;
        if step < 50 {
            assert_eq!(budget.stats().granted, 0);
        } else if step >= 70 {
            assert!(budget.stats().granted > 0);
        }
    }
}

/// Processes that were refused at once ask again at different times, because each has a random seed.
#[tokio::test(start_paused = true)]
async fn processes_ask_again_one_by_one() {
    let store = MemoryStore::new();
    assert!(store.settle("reattempt:2:a", 0, 10 * TOKEN, 0).await.unwrap());
    let budgets: Vec<_> = (0..20).map(|_| FleetBudget::new(store.clone())).collect();
    for budget in &budgets {
        assert!(!confirmed(&ask(budget, "a").unwrap()).await);
    }
    let mut moments = std::collections::HashSet::new();
    for moment in 0..130 {
        advance(Duration::from_millis(1)).await;
        for budget in budgets.iter().filter(|budget| budget.stats().asked == 1) {
            (0..3).for_each(|_| budget.local().on_success("a", 0));
            if ask(budget, "a").is_some() {
                moments.insert(moment);
            }
        }
    }
    assert!(budgets.iter().all(|budget| budget.stats().asked == 2));
    assert!(moments.len() > 5, "{moments:?}");
}

/// A store whose future panics, which must not lose the retry.
struct Panicking;

impl BudgetStore for Panicking {
    fn settle<'a>(&'a self, _: &'a str, _: u64, _: u64, _: u64) -> Settling<'a> {
        Box::pin(async { std::panic::resume_unwind(Box::new("a store's fault")) })
    }
}

#[tokio::test(start_paused = true)]
async fn panic_of_store_leaves_process_alone() {
    let budget = FleetBudget::new(Panicking);
    let permit = ask(&budget, "a").unwrap();
    assert!(confirmed(&permit).await);
    assert_eq!(budget.stats().alone, 1);
}

#[test]
fn process_without_a_runtime_decides_alone() {
    let budget = FleetBudget::new(MemoryStore::new());
    assert_eq!(poll(&ask(&budget, "a").unwrap()), Poll::Ready(true));
    assert_eq!((budget.stats().asked, budget.stats().alone), (0, 1));
}

#[test]
fn stopped_runtime_leaves_no_open_question() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let budget = FleetBudget::new(Faulty::taking(Duration::from_secs(60)));
    let permit = runtime.block_on(async { ask(&budget, "a").unwrap() });
    assert_eq!(poll(&permit), Poll::Pending);
    drop(runtime);
    assert_eq!(poll(&permit), Poll::Ready(true));
}

/// With an in-memory store.
// F-9, F-10
#[tokio::test(start_paused = true)]
async fn keys_vanish_when_their_bucket_is_full() {
    let store = MemoryStore::new();
    for number in 0..100 {
        store.settle(&format!("{number}"), 0, 10_000_000, 0).await.unwrap();
    }
    assert_eq!(store.len(), 100);
    assert!(!store.settle("0", 0, 1_000_000, 0).await.unwrap());
    assert!(store.settle("new", 0, 1_000_000, 0).await.unwrap(), "its bucket is its own");
    advance(Duration::from_secs(41)).await;
    store.settle("another", 0, 0, 0).await.unwrap();
    assert_eq!(store.len(), 1);
    store.clear();
    assert!(store.is_empty());
}

#[test]
fn debug_output_is_complete() {
    let budget = ByHand::default().budget().prefix("shop").patience(Duration::from_millis(20));
    assert_eq!(
        format!("{budget:?}"),
        "FleetBudget { prefix: \"shop\", patience: 20ms, stats: FleetStats { asked: 0, granted: 0, refused: 0, \
         remembered: 0, alone: 0, withheld: 0, late: 0, failed: 0, round_trip: 0ns }, local: RetryBudget { kind: cautious, \
         capacity: 10.0, refusals: 0, destinations: 0, not_full: {} }, .. }"
    );
}

#[derive(Debug, Clone)]
enum Event {
    Failed(FailureKind),
    Retried(FailureKind, bool),
    Hedged,
    Succeeded,
    Permanent,
    Waited(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let kind = || {
        prop_oneof![
            Just(FailureKind::Server),
            Just(FailureKind::Network),
            Just(FailureKind::Throttled),
            Just(FailureKind::Timeout)
        ]
    };
    let event = prop_oneof![
        kind().prop_map(Event::Failed),
        (kind(), any::<bool>()).prop_map(|(kind, succeeds)| Event::Retried(kind, succeeds)),
        Just(Event::Hedged),
        Just(Event::Succeeded),
        Just(Event::Permanent),
        (0..700_u64).prop_map(Event::Waited),
    ];
    prop::collection::vec(event, 1..100)
}

/// Returns the answers and the balance after each event.
fn trace(budget: &impl Budget, balance: impl Fn() -> f64, events: &[Event]) -> Vec<(bool, f64)> {
    let mut now = Duration::ZERO;
    let mut trace = Vec::new();
    for event in events {
        let granted = match *event {
            Event::Failed(kind) => {
                budget.on_failure("a", &Failure::new(kind).into(), now);
                false
            }
            Event::Retried(kind, succeeds) => {
                let permit = budget.acquire_after_failure("a", &Failure::new(kind).into(), now);
                let sent = permit.filter(|permit| poll(permit) == Poll::Ready(true));
                let was_sent = sent.is_some();
                match sent.map(reattempt_core::Permit::spend) {
                    Some(retry) if succeeds => retry.succeed(),
                    other => drop(other),
                }
                was_sent
            }
            Event::Hedged => budget.acquire("a", &SERVER, now).is_some(),
            Event::Succeeded => {
                budget.on_success("a", 0);
                false
            }
            Event::Permanent => {
                budget.on_permanent_failure("a", reattempt_core::ServerHint::None, 0);
                false
            }
            Event::Waited(seconds) => {
                now += Duration::from_secs(seconds);
                false
            }
        };
        trace.push((granted, balance()));
    }
    trace
}

/// A carrier to a store that is down. Each question ends at once, without an answer of the store.
struct Down(Fault, Arc<AtomicU64>);

impl Down {
    /// Returns a budget whose store has failed for ten seconds.
    fn for_10_s(fault: Fault) -> FleetBudget {
        let seconds = Arc::new(AtomicU64::new(0));
        let budget = FleetBudget::carried_by(Self(fault, Arc::clone(&seconds)));
        drop(ask(&budget, "another"));
        seconds.store(10, Ordering::Relaxed);
        budget
    }
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Error,
    Late,
    Lost,
}

impl Courier for Down {
    fn now(&self) -> Duration {
        Duration::from_secs(self.1.load(Ordering::Relaxed))
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn seed(&self) -> u64 {
        1
    }

    fn carry(&self, message: Message) {
        match (message, self.0) {
            (Message::Question(question), Fault::Error) => question.answer(Err("down".into())),
            (Message::Question(question), Fault::Late) => question.is_late(),
            (Message::Report(report), Fault::Error) if report.take().is_some() => report.answer(Err("down".into())),
            _ => {}
        }
    }
}

proptest! {
    /// Without its store, a process decides as its own budget does: without a runtime, with a store that loses what is
    /// sent, and with one that has failed or been late for ten seconds.
    // F-2, FB-1
    #[test]
    fn process_alone_has_its_own_budget(events in events()) {
        let own = RetryBudget::cautious();
        let expected = trace(&own, || own.balance("a"), &events);
        let down = [Fault::Error, Fault::Late, Fault::Lost].map(Down::for_10_s);
        for fleet in down.into_iter().chain([FleetBudget::new(MemoryStore::new())]) {
            prop_assert_eq!(trace(&fleet, || fleet.local().balance("a"), &events), expected.clone(), "{:?}", fleet);
            prop_assert_eq!(fleet.stats().granted, 0);
        }
    }
}
