//! Tests of the cautious budget: its bounds for any order of events, a serial model, threads, and the edge cases of
//! tokens and doubt.

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Evidence, Failure, FailureKind, PaidRetry, Permit, Signs, Undone, Verdict};

const SERVER: Failure = Failure::new(FailureKind::Server);
const LOST: Failure = Failure::new(FailureKind::Network);
const THROTTLED: Failure = Failure::new(FailureKind::Throttled);
const START: Duration = Duration::ZERO;
const QUIET: Duration = Duration::from_secs(600);

fn retry(budget: &RetryBudget, destination: &str, now: Duration) -> Option<Permit> {
    budget.acquire_after_failure(destination, &SERVER.into(), now)
}

/// Makes calls of one attempt that fail one after the other. Returns the number of retries sent.
fn outage(budget: &RetryBudget, destination: &str, calls: u32, now: Duration) -> u32 {
    let sent = (0..calls).filter_map(|_| retry(budget, destination, now)).map(Permit::spend);
    u32::try_from(sent.count()).unwrap()
}

fn succeed(budget: &RetryBudget, destination: &str, calls: u32) {
    (0..calls).for_each(|_| budget.on_success(destination, 0));
}

fn names(budget: &RetryBudget) -> Vec<String> {
    budget.destinations().iter().map(|(name, _)| name.to_string()).collect()
}

#[test]
fn an_outage_is_sent_three_retries() {
    for budget in [RetryBudget::cautious(), RetryBudget::cautious().shared(true)] {
        assert_eq!(outage(&budget, "a", 1000, START), 3);
        assert_eq!((budget.balance("a"), budget.refusals()), (7.0, 997));
        // Only 128 of a thousand failures count, so 63 successes leave a doubt of 2.
        succeed(&budget, "a", 62);
        assert_eq!(outage(&budget, "a", 1, START), 0);
        succeed(&budget, "a", 2);
        assert_eq!(outage(&budget, "a", 1, START), 1);
    }
}

#[test]
fn a_retry_that_helps_costs_nothing() {
    let budget = RetryBudget::cautious();
    for _ in 0..1000 {
        let paid = retry(&budget, "a", START).unwrap().spend();
        assert_eq!((paid.cost(), budget.balance("a"), budget.is_full()), (1, 9.0, false));
        paid.succeed();
        budget.on_success("a", 1);
        assert!(budget.is_full());
    }
}

#[test]
fn a_permit_unspent_leaves_the_failure() {
    let budget = RetryBudget::cautious();
    for _ in 0..3 {
        drop(retry(&budget, "a", START).unwrap());
        assert_eq!(budget.balance("a"), 10.0);
    }
    assert!(retry(&budget, "a", START).is_none());
}

/// Hedges do not count as failures, and callers that give up report none.
#[test]
fn hedges_without_a_success_are_three() {
    let budget = RetryBudget::cautious();
    let timeout = Failure::new(FailureKind::Timeout);
    let hedge = || budget.acquire("a", &timeout, START).map(Permit::spend).is_some();
    assert_eq!((0..100).filter(|_| hedge()).count(), 3);
    assert_eq!(budget.balance("a"), 4.0);
    // A refused hedge is not a failure, so one success allows retries again.
    succeed(&budget, "a", 1);
    assert_eq!((0..100).filter(|_| hedge()).count(), 2);
}

#[test]
fn one_bad_destination_closes_itself_alone() {
    let budget = RetryBudget::cautious();
    assert_eq!(outage(&budget, "bad", 100, START), 3);
    assert_eq!(outage(&budget, "good", 1, START), 1);
    succeed(&budget, "good", 1);
    assert_eq!(outage(&budget, "good", 3, START), 3);
}

/// Successes have refilled the tokens but not removed all doubt, so time must still be able to.
#[test]
fn doubt_with_all_tokens_ends_in_quiet() {
    let budget = RetryBudget::cautious().max_destinations(1);
    outage(&budget, "a", 1000, START);
    succeed(&budget, "a", 20);
    assert_eq!((budget.balance("a"), budget.is_full()), (10.0, false));
    assert_eq!(outage(&budget, "a", 1, Duration::from_secs(599)), 0);
    // That failure restarted the ten minutes.
    assert_eq!(outage(&budget, "a", 1, Duration::from_secs(1198)), 0);
    assert_eq!(outage(&budget, "a", 9, Duration::from_secs(1798)), 3);
    assert_eq!(budget.balance("a"), 7.0);
}

/// A failure occupies a place in the table. A dead host holds it while a retry is in flight, and gets three retries
/// again after it was evicted.
// trap 15, trap 52
#[test]
fn a_dead_host_leaves_its_place() {
    let budget = RetryBudget::cautious().max_destinations(1);
    budget.on_failure("dead", &SERVER.into(), START);
    assert_eq!((names(&budget), budget.is_full()), (vec!["dead".to_owned()], false));
    let under_way = retry(&budget, "dead", START).unwrap().spend();
    assert_eq!(outage(&budget, "dead", 1000, START), 1);
    retry(&budget, "new", START).unwrap().spend().succeed();
    assert_eq!(names(&budget), ["dead"]);
    drop(under_way);
    assert_eq!(outage(&budget, "dead", 1000, START), 0);
    retry(&budget, "new", START).unwrap().spend().succeed();
    assert_eq!(names(&budget), ["new"]);
    assert_eq!(outage(&budget, "dead", 1000, START), 3);
}

#[test]
fn quiet_destination_leaves_the_budget_full() {
    let budget = RetryBudget::cautious();
    outage(&budget, "once", 5, START);
    let elsewhere = |now| {
        let paid = retry(&budget, "busy", now).unwrap().spend();
        paid.succeed();
        budget.on_success("busy", 1);
    };
    elsewhere(QUIET - Duration::from_secs(1));
    assert!(!budget.is_full());
    elsewhere(QUIET + Duration::from_secs(10));
    assert!(budget.is_full());
}

/// A server that requests fewer requests is overloaded, whether or not a retry succeeds.
#[test]
fn a_retry_after_429_returns_nothing() {
    let budget = RetryBudget::cautious();
    let retry = || budget.acquire_after_failure("a", &THROTTLED.into(), START).unwrap();
    drop(retry());
    assert_eq!(budget.balance("a"), 10.0, "it was not sent");
    for _ in 0..5 {
        retry().spend().succeed();
        budget.on_success("a", 1);
    }
    // Two per retry, and a fifth for the success.
    assert_eq!(budget.balance("a"), 1.0);
}

#[test]
fn partial_failures_keep_the_bucket_open() {
    // Every third attempt fails, including retries.
    let budget = RetryBudget::cautious();
    let (mut attempt, mut lost) = (0, 0);
    for call in 0..10_000 {
        let mut paid: Option<PaidRetry> = None;
        for number in 0..3 {
            attempt += 1;
            if attempt % 3 != 0 {
                paid.take().into_iter().for_each(PaidRetry::succeed);
                budget.on_success("a", number);
                break;
            }
            match retry(&budget, "a", Duration::from_millis(call)) {
                Some(permit) => paid = Some(permit.spend()),
                None => {
                    lost += 1;
                    break;
                }
            }
        }
    }
    assert_eq!((lost, budget.refusals()), (0, 0));
}

#[test]
fn two_hundred_threads_keep_both_bounds() {
    for budget in [RetryBudget::cautious(), RetryBudget::cautious().shared(true)] {
        let (start, destination) = (Barrier::new(200), "a");
        let (sent, earned): (u32, u32) = thread::scope(|scope| {
            let work = |thread: u32| {
                start.wait();
                let (mut sent, mut succeeded) = (0, 0);
                for step in 0..200 {
                    if thread == 0 && step % 20 == 0 {
                        budget.on_success(destination, 0);
                        succeeded += 1;
                    } else {
                        sent += outage(&budget, destination, 1, START);
                    }
                }
                (sent, succeeded)
            };
            let threads: Vec<_> = (0..200).map(|thread| scope.spawn(move || work(thread))).collect();
            let totals = threads.into_iter().map(|thread| thread.join().unwrap());
            totals.fold((0, 0), |(a, b), (c, d)| (a + c, b + d))
        });
        assert!(sent <= 3 + 2 * earned, "{sent} retries after {earned} successes");
        assert!((1..=12).contains(&sent), "ten tokens and a fifth for each success: {sent}");
    }
}

#[test]
fn moments_out_of_order_are_harmless() {
    let budget = RetryBudget::cautious();
    let late = Duration::from_secs(1000);
    assert_eq!(outage(&budget, "a", 9, late), 3);
    assert_eq!(outage(&budget, "a", 9, START), 0, "an older moment does not turn the clock back");
    assert_eq!(outage(&budget, "a", 9, late + QUIET - Duration::from_secs(1)), 0);
    let years = Duration::from_secs(8 * 365 * 86_400);
    assert_eq!(outage(&budget, "c", 9, years), 3);
    assert_eq!(outage(&budget, "c", 9, years + QUIET - Duration::from_secs(1)), 0);
    assert_eq!(outage(&budget, "c", 9, years + 2 * QUIET), 3);
    // After eight years time stands still.
    assert_eq!(outage(&budget, "b", 9, Duration::MAX), 3);
    assert_eq!(outage(&budget, "b", 9, Duration::MAX), 0);
}

/// A failure, with the time before it at which its attempt was sent if its cause is shared.
#[derive(Debug, Clone, Copy)]
struct Failed {
    failure: Failure,
    sent_before: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Step {
    Fail { failed: Failed, retry: bool, spend: bool },
    Replace { sent_before: u64 },
    Hedge,
    Succeed,
    SucceedAfterRetry,
    GiveBack,
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let own = prop_oneof![8 => Just(SERVER), 1 => Just(THROTTLED)];
    let own = own.prop_map(|failure| Failed { failure, sent_before: None });
    let shared = (0..300_u64).prop_map(|before| Failed { failure: LOST, sent_before: Some(before) });
    let failed = prop_oneof![2 => own, 3 => shared];
    let step = prop_oneof![
        8 => (failed, any::<bool>(), any::<bool>())
            .prop_map(|(failed, retry, spend)| Step::Fail { failed, retry, spend }),
        1 => (0..300_u64).prop_map(|sent_before| Step::Replace { sent_before }),
        1 => Just(Step::Hedge),
        4 => Just(Step::Succeed),
        3 => Just(Step::SucceedAfterRetry),
        1 => Just(Step::GiveBack),
        2 => (0..200_u64).prop_map(Step::Wait),
        1 => (599_800..600_200_u64).prop_map(Step::Wait),
    ];
    proptest::collection::vec(step, 1..400)
}

/// The rule in plain numbers, with tokens in tenths.
struct Model {
    tokens: i32,
    doubt: u32,
    failed_at: u64,
    /// The last failure belongs to an event, and that event was granted.
    event: Option<bool>,
    /// Since the bucket was new.
    counts: Counts,
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    /// Retries and hedges that were paid for in full.
    paid: i32,
    overdrawn: i32,
    /// Grants to failures that stand alone or open an event.
    doubted: u32,
    successes: i32,
    /// Retries whose tokens were returned.
    returned: i32,
}

impl Model {
    const FULL: i32 = 100;

    fn new(failed_at: u64) -> Self {
        Self { tokens: Self::FULL, doubt: 0, failed_at, event: None, counts: Counts::default() }
    }

    /// Records a failure or, without one, a hedge. Returns the cost in tenths of what was granted.
    fn record(&mut self, failed: Option<Failed>, asks: bool, now: u64) -> Option<i32> {
        if now - self.failed_at >= 600_000 {
            // Retries that were granted earlier are still paid for.
            *self = Self::new(self.failed_at);
        }
        let sent = failed.and_then(|failed| failed.sent_before).map(|before| now.saturating_sub(before));
        let cost = if failed.is_none_or(|failed| failed.failure == THROTTLED) { 20 } else { 10 };
        let is_member = self.event.is_some() && sent.is_some_and(|sent| sent <= self.failed_at);
        let doubt = if is_member { self.doubt } else { (self.doubt + 1).min(128) };
        let may = doubt <= 3 && (!is_member || self.event == Some(true));
        let granted = match asks && may {
            true if self.tokens >= cost => Some(cost),
            true if is_member && doubt <= 1 && self.tokens - 20 >= -5120 => Some(20),
            _ => None,
        };
        if !is_member && (granted.is_some() || failed.is_some()) {
            self.event = sent.map(|_| doubt <= 3 && self.tokens >= 10);
            (self.doubt, self.failed_at) = (doubt, now);
        }
        if let Some(paid) = granted {
            match self.tokens >= cost {
                true => self.counts.paid += 1,
                false => self.counts.overdrawn += 1,
            }
            self.tokens -= paid;
            self.counts.doubted += u32::from(!is_member);
        }
        granted
    }

    /// Records a refused stream. Returns `true` if it is replaced.
    fn replace(&mut self, sent_before: u64, now: u64) -> bool {
        self.record(Some(Failed { failure: LOST, sent_before: Some(sent_before) }), false, now);
        self.doubt <= 3
    }

    fn add(&mut self, tenths: i32) {
        self.tokens = (self.tokens + tenths).min(Self::FULL);
    }

    fn succeed(&mut self) {
        self.add(2);
        self.doubt = self.doubt.saturating_sub(2);
        self.counts.successes += 1;
    }

    fn keeps_bounds(&self) -> bool {
        let Counts { paid, overdrawn, doubted, successes, returned } = self.counts;
        10 * paid <= 100 + 2 * successes + 10 * returned
            && 10 * overdrawn <= 2560 + successes + 10 * returned
            && i64::from(doubted) <= 3 + 2 * i64::from(successes)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The bucket follows the rule, and its bounds hold, for any order of events.
    // C-4, C-5, CI-1, CI-5, CI-6
    #[test]
    fn the_rule_and_both_bounds_hold(shared in any::<bool>(), steps in steps()) {
        let budget = RetryBudget::cautious();
        let budget = if shared { budget.shared(true) } else { budget };
        let (mut model, mut now, mut refusals) = (Model::new(0), 0, 0);
        let (mut held, mut sent) = (Vec::<(i32, Permit)>::new(), Vec::<PaidRetry>::new());
        for step in steps {
            let moment = Duration::from_millis(now);
            let evidence = |failed: Failed| match failed.sent_before {
                Some(before) => Evidence::from(failed.failure).sent_at(Duration::from_millis(now.saturating_sub(before))),
                None => failed.failure.into(),
            };
            match step {
                Step::Fail { failed, retry: false, .. } => {
                    budget.on_failure("a", &evidence(failed), moment);
                    model.record(Some(failed), false, now);
                }
                Step::Fail { failed, spend, .. } => {
                    let permit = budget.acquire_after_failure("a", &evidence(failed), moment);
                    let granted = model.record(Some(failed), true, now);
                    prop_assert_eq!(permit.is_some(), granted.is_some());
                    refusals += u64::from(permit.is_none());
                    match permit {
                        Some(permit) if spend => sent.push(permit.spend()),
                        permit => held.extend(granted.zip(permit)),
                    }
                }
                Step::Replace { sent_before } => {
                    let failed = Failed { failure: LOST, sent_before: Some(sent_before) };
                    let signs = Signs { undone: Some(Undone::Refused), ..Signs::new(Verdict::NotProcessed(LOST)) };
                    let evidence = Evidence::of(&signs).sent_at(evidence(failed).sent);
                    prop_assert_eq!(budget.on_unprocessed("a", &evidence, moment), model.replace(sent_before, now));
                }
                Step::Hedge => {
                    let permit = budget.acquire("a", &SERVER, moment);
                    prop_assert_eq!(permit.is_some(), model.record(None, true, now).is_some());
                    refusals += u64::from(permit.is_none());
                    sent.extend(permit.map(Permit::spend));
                }
                Step::Succeed => {
                    budget.on_success("a", 0);
                    model.succeed();
                }
                Step::SucceedAfterRetry => {
                    if let Some(paid) = sent.pop() {
                        let returned = i32::from(paid.cost() == 1);
                        paid.succeed();
                        budget.on_success("a", 1);
                        model.add(10 * returned);
                        model.succeed();
                        model.counts.returned += returned;
                    }
                }
                Step::GiveBack => {
                    if let Some((tenths, permit)) = held.pop() {
                        drop(permit);
                        model.add(tenths);
                        model.counts.returned += 1;
                    }
                }
                Step::Wait(milliseconds) => now += milliseconds,
            }
            prop_assert_eq!(budget.balance("a"), f64::from(model.tokens) / 10.0);
            prop_assert_eq!(budget.is_full(), model.tokens == Model::FULL && model.doubt == 0);
            prop_assert_eq!(budget.refusals(), refusals);
            prop_assert!(model.keeps_bounds(), "{:?}", model.counts);
        }
    }
}
