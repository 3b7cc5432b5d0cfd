//! The memory of a process: refusals, failures, and its bounds.

use std::time::Duration;

use reattempt_core::{Budget, Evidence, Failure, FailureKind};
use reattempt_fleet::FleetBudget;
use reattempt_fleet::courier::Message;
use reattempt_fleet::rule::TOKEN;

use crate::support::{ByHand, amounts, ask, poll};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Retries in each millisecond, which the local budget always grants. Returns when the store was asked.
fn asked(hand: &ByHand, budget: &FleetBudget, seconds: u64, answer: Result<bool, &str>) -> Vec<Duration> {
    let mut asked = Vec::new();
    for _ in 0..seconds * 1000 {
        hand.advance(MILLISECOND);
        (0..3).for_each(|_| budget.local().on_success("a", 0));
        drop(ask(budget, "a"));
        while let Some(message) = hand.take(0) {
            if let Message::Question(question) = message {
                asked.push(hand.time());
                question.answer(answer.map_err(Into::into));
            }
        }
    }
    asked
}

fn gaps(asked: &[Duration]) -> Vec<Duration> {
    asked.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

// F-8
#[test]
fn refusals_in_a_row_are_remembered_longer() {
    let hand = ByHand::default();
    let asked = asked(&hand, &hand.budget(), 60, Ok(false));
    let gaps = gaps(&asked);
    let within = |gap: Duration, least: u64, most: u64| {
        // A retry comes in each millisecond, so the probe may be one late.
        let bounds = Duration::from_millis(least)..=Duration::from_millis(most + 1);
        assert!(bounds.contains(&gap), "{gap:?} is not in {bounds:?}");
    };
    within(gaps[0], 75, 125);
    within(gaps[1], 150, 250);
    within(gaps[2], 300, 500);
    gaps[3..].iter().for_each(|gap| within(*gap, 750, 1250));
    assert!(gaps.iter().collect::<std::collections::HashSet<_>>().len() > 20, "they are spread");
}

#[test]
fn grant_clears_the_memory_of_refusals() {
    let hand = ByHand::default();
    let budget = hand.budget();
    asked(&hand, &budget, 10, Ok(false));
    assert!(asked(&hand, &budget, 3, Ok(true)).len() > 1000, "every retry asks");
    let gaps = gaps(&asked(&hand, &budget, 1, Ok(false)));
    assert!(gaps[0] < Duration::from_millis(130), "it begins anew: {gaps:?}");
}

// F-8
#[test]
fn failing_store_is_asked_once_a_second() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let asked = asked(&hand, &budget, 30, Err("no"));
    assert!(gaps(&asked).iter().all(|gap| *gap >= Duration::from_secs(1)), "{asked:?}");
    assert!(asked.len() >= 29, "{}", asked.len());
    // Everything else was decided without it, the questions that failed too: refused for 5 to 10 s, then alone (FB-1).
    let stats = budget.stats();
    assert_eq!((stats.alone + stats.withheld, stats.remembered), (30_000, 0));
    assert!((5_000..=10_001).contains(&stats.withheld), "{stats:?}");
}

/// Asks, and answers the question if there is one. Returns `true` if the store was asked.
fn is_asked(hand: &ByHand, budget: &FleetBudget, answer: Result<bool, &str>) -> bool {
    (0..3).for_each(|_| budget.local().on_success("a", 0));
    let permit = ask(budget, "a");
    let mut asked = 0;
    while let Some(message) = hand.take(0) {
        if let Message::Question(question) = message {
            asked += 1;
            question.answer(answer.map_err(Into::into));
        }
    }
    drop(permit.map(reattempt_core::Permit::spend));
    assert!(asked <= 1);
    asked == 1
}

/// Of the retries that come at once to a store that failed, one asks. Its answer lets all others ask.
// F-8, F-11
#[test]
fn probe_of_a_failed_store_is_alone() {
    let hand = ByHand::default();
    let budget = hand.budget();
    assert!(is_asked(&hand, &budget, Err("no")));
    hand.advance(Duration::from_millis(999));
    assert!(!is_asked(&hand, &budget, Ok(true)), "a failure is remembered for a second");
    hand.advance(MILLISECOND);
    let probe = ask(&budget, "a").unwrap();
    assert!(ask(&budget, "b").is_none(), "its retry would be alone");
    assert_eq!(hand.len(), 1);
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    question.answer(Ok(true));
    assert_eq!(poll(&probe), std::task::Poll::Ready(true));
    // The failure was a second ago, and it does not matter any more.
    (0..10).for_each(|_| assert!(is_asked(&hand, &budget, Ok(true))));
}

/// A report that is confirmed shows that the store works, and one that fails shows that it does not.
#[test]
fn reports_show_the_store_s_state() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let report = |answer: Result<bool, &str>| {
        let permit = ask(&budget, "a").unwrap();
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        question.answer(Ok(true));
        permit.spend().succeed();
        let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
        assert_eq!(report.delay(), Duration::from_millis(10), "what a retry has earned is needed soon");
        assert_eq!(report.take(), Some(3 * TOKEN));
        report.answer(answer.map_err(Into::into));
    };
    report(Err("no"));
    assert_eq!(budget.stats().failed, 1);
    assert!(!is_asked(&hand, &budget, Ok(true)), "it is not asked for a second");
    hand.advance(Duration::from_secs(1));
    report(Ok(true));
    assert!(is_asked(&hand, &budget, Ok(true)));
}

/// While the store fails, a report waits for the probe, or goes with it.
// F-8
#[test]
fn report_waits_while_the_store_fails() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let permit = ask(&budget, "a").unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    question.is_late();
    question.answer(Ok(true));
    permit.spend().succeed();
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    assert_eq!(report.take(), None);
    hand.advance(Duration::from_secs(1));
    let _probe = ask(&budget, "a").unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    assert_eq!(amounts(&question), (3 * TOKEN, TOKEN));
}

/// A store that fails after a refusal leaves a process whose retries succeed to its own budget. The refusal is not
/// remembered longer.
// F-2, FB-1
#[test]
fn failure_ends_the_memory_of_refusals() {
    for fault in ["fails", "is late", "is lost"] {
        let hand = ByHand::default();
        let budget = hand.budget();
        let succeeds = ask(&budget, "a").unwrap();
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        question.answer(Ok(true));
        succeeds.spend().succeed();
        drop(hand.take(0));
        assert!(is_asked(&hand, &budget, Ok(false)));
        hand.advance(Duration::from_millis(130));
        (0..30).for_each(|_| budget.local().on_success("a", 0));
        let probe = ask(&budget, "a").unwrap();
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        assert!(ask(&budget, "a").is_none(), "{fault}: the probe has no answer yet");
        match fault {
            "fails" => question.answer(Err("no".into())),
            "is late" => {
                question.is_late();
                drop(question);
            }
            _ => drop(question),
        }
        assert_eq!(poll(&probe), std::task::Poll::Ready(true), "{fault}");
        (0..3).for_each(|_| budget.local().on_success("a", 0));
        let next = ask(&budget, "a").expect(fault);
        drop(next.spend());
    }
}

/// Ten questions at once, all refused: one refusal, not ten in a row.
#[test]
fn refusals_at_once_count_as_one() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let permits: Vec<_> = (0..10)
        .map(|_| {
            (0..3).for_each(|_| budget.local().on_success("a", 0));
            ask(&budget, "a").unwrap()
        })
        .collect();
    while let Some(Message::Question(question)) = hand.take(0) {
        // The last answer is late, and does not begin the time anew.
        hand.advance(Duration::from_millis(if hand.len() == 0 { 70 } else { 0 }));
        question.answer(Ok(false));
    }
    assert!(permits.iter().all(|permit| poll(permit) == std::task::Poll::Ready(false)));
    hand.advance(Duration::from_millis(126 - 70));
    (0..30).for_each(|_| budget.local().on_success("a", 0));
    assert!(ask(&budget, "a").is_some());
    assert_eq!(budget.stats().asked, 11);
}

/// A process without failures sends nothing.
// F-8
#[test]
fn healthy_process_sends_nothing() {
    let hand = ByHand::default();
    let budget = hand.budget();
    (0..1000).for_each(|_| budget.on_success("a", 0));
    assert_eq!(hand.len(), 0);
}

/// A report whose tokens went with a question is no message, so it is not the one that a failing store gets.
// F-8
#[test]
fn empty_report_is_no_probe() {
    let hand = ByHand::default();
    let budget = hand.budget();
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_success("a", 0);
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    assert!(is_asked(&hand, &budget, Err("no")));
    hand.advance(Duration::from_secs(1));
    assert_eq!(report.take(), None);
    assert!(is_asked(&hand, &budget, Ok(true)));
}

// F-10
#[test]
fn refusal_concerns_one_destination() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let _refused = ask(&budget, "a").unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    question.answer(Ok(false));
    assert!(ask(&budget, "a").is_none());
    let other = ask(&budget, "b").unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    assert_eq!(amounts(&question), (0, TOKEN));
    question.answer(Ok(true));
    assert_eq!(poll(&other), std::task::Poll::Ready(true));
}

#[test]
fn destination_without_place_is_alone() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let name = |number: u32| format!("host-{number}");
    let busy: Vec<_> = (0..1024).map(|number| ask(&budget, &name(number)).unwrap()).collect();
    let alone = ask(&budget, "one more").unwrap();
    assert_eq!((hand.len(), poll(&alone)), (1024, std::task::Poll::Ready(true)));
    drop(busy);
    while let Some(message) = hand.take(0) {
        drop(message);
    }
    drop(ask(&budget, "too soon"));
    assert_eq!(hand.len(), 0, "room is looked for once a second");
    hand.advance(Duration::from_secs(2));
    let _asks = ask(&budget, "another").unwrap();
    assert_eq!(hand.len(), 1, "idle destinations make room");
}

/// Destinations whose refusals are remembered keep their places. Those with tokens for a store that failed do not, or
/// an outage of the store would leave no place for others.
#[test]
fn refused_destination_keeps_its_place() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let name = |number: u32| format!("host-{number}");
    for number in 0..1024 {
        let permit = ask(&budget, &name(number)).unwrap();
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        // The first is refused. The others earn tokens, and their reports are lost.
        question.answer(Ok(number != 0));
        match number {
            0 => drop(permit),
            _ => permit.spend().succeed(),
        }
        assert_eq!(hand.take(0).is_some(), number != 0);
    }
    let _asks = ask(&budget, "another").unwrap();
    assert!(hand.take(0).is_some(), "the others made room");
    assert!(ask(&budget, &name(0)).is_none(), "its refusal is remembered");
    let _owes_nothing = ask(&budget, &name(1)).unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    assert_eq!(amounts(&question), (0, TOKEN), "what was owed is lost");
}

/// The lost calls were all sent before the first loss was seen, so they are one event. A member of a fleet does not
/// overdraw for it.
// F-12, C-5
#[test]
fn failing_client_takes_three_tokens() {
    for (kind, most) in [(FailureKind::Server, 3), (FailureKind::Timeout, 3), (FailureKind::Network, 10)] {
        let hand = ByHand::default();
        let budget = hand.budget();
        let mut spent = Vec::new();
        for _ in 0..1000 {
            let evidence = Evidence::from(Failure::new(kind)).sent_at(Duration::ZERO);
            let permit = budget.acquire_after_failure("a", &evidence, Duration::ZERO);
            spent.extend(permit.map(reattempt_core::Permit::spend));
            while let Some(Message::Question(question)) = hand.take(0) {
                question.answer(Ok(true));
            }
        }
        assert_eq!((spent.len(), budget.stats().granted), (most, most as u64), "{kind:?}");
    }
}
