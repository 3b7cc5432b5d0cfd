//! Tests of reports: when they leave, what they carry, and what becomes of those that are lost.

use std::time::Duration;

use reattempt_core::{Budget, Failure, FailureKind};
use reattempt_fleet::courier::Message;
use reattempt_fleet::rule::TOKEN;

use crate::support::{ByHand, amounts, ask};

#[test]
fn success_is_reported_while_not_full() {
    let hand = ByHand::default();
    let budget = hand.budget();
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_success("b", 0);
    assert_eq!(hand.len(), 0, "the bucket of b is full");
    budget.on_success("a", 0);
    budget.on_success("a", 0);
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    let within = Duration::from_millis(500)..=Duration::from_millis(1500);
    assert!(within.contains(&report.delay()), "{:?}", report.delay());
    // The second success found a full bucket: the first had removed the doubt.
    assert_eq!((report.key(), report.take(), report.take()), ("reattempt:2:a", Some(TOKEN / 5), None));
    assert_eq!(hand.len(), 0);
}

/// A permanent failure is an answer of the server, so it counts as a success does.
#[test]
fn permanent_failure_is_reported_as_success() {
    let hand = ByHand::default();
    let budget = hand.budget();
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_permanent_failure("a", reattempt_core::ServerHint::None, 0);
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    assert_eq!(report.take(), Some(TOKEN / 5));
}

/// One report has the tokens of all that happened before it left.
#[test]
fn credits_of_a_moment_share_a_report() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let permits: Vec<_> = (0..3).map(|_| ask(&budget, "a").unwrap()).collect();
    while let Some(Message::Question(question)) = hand.take(0) {
        question.answer(Ok(true));
    }
    permits.into_iter().for_each(|permit| permit.spend().succeed());
    assert_eq!(hand.len(), 1);
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    assert_eq!(report.take(), Some(9 * TOKEN));
    // It has left, so what is earned now needs another. A success of a call waits longer than what a retry has earned.
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_success("a", 0);
    let permit = ask(&budget, "b").unwrap();
    let Some(Message::Report(later)) = hand.take(0) else { panic!("no report") };
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    question.answer(Ok(true));
    drop(permit);
    let Some(Message::Report(soon)) = hand.take(0) else { panic!("no report") };
    assert!(soon.delay() < later.delay());
    assert_eq!((later.key(), later.take()), ("reattempt:2:a", Some(TOKEN / 5)));
    assert_eq!((soon.key(), soon.take()), ("reattempt:2:b", Some(TOKEN)));
}

/// Both kinds of reports of one destination may be on their way.
#[test]
fn soon_does_not_wait_for_later() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let permit = ask(&budget, "a").unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    question.answer(Ok(true));
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_success("a", 0);
    permit.spend().succeed();
    let Some(Message::Report(later)) = hand.take(0) else { panic!("no report") };
    let Some(Message::Report(soon)) = hand.take(0) else { panic!("no report") };
    assert_eq!(soon.delay(), Duration::from_millis(10));
    assert_eq!((soon.take(), later.take()), (Some(3 * TOKEN + TOKEN / 5), None));
}

/// A report that is lost with its runtime makes room for the next one, which has its tokens.
#[test]
fn lost_report_is_made_up_for() {
    let hand = ByHand::default();
    let budget = hand.budget();
    for _ in 0..2 {
        budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
        budget.on_success("a", 0);
        assert!(hand.len() == 1);
        drop(hand.take(0));
    }
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_success("a", 0);
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    assert_eq!(report.take(), Some(3 * (TOKEN / 5)));
}

/// A report that has left is over: its end does not make room for a second report beside the next one.
#[test]
fn report_that_left_has_one_successor() {
    let hand = ByHand::default();
    let budget = hand.budget();
    let earn = || {
        budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
        budget.on_success("a", 0);
    };
    earn();
    let Some(Message::Report(first)) = hand.take(0) else { panic!("no report") };
    assert_eq!(first.take(), Some(TOKEN / 5));
    earn();
    assert_eq!(hand.len(), 1);
    first.answer(Ok(true));
    earn();
    assert_eq!(hand.len(), 1, "it goes with the second report");
}

#[test]
fn credit_goes_with_the_next_question() {
    let hand = ByHand::default();
    let budget = hand.budget();
    budget.on_failure("a", &Failure::new(FailureKind::Server).into(), Duration::ZERO);
    budget.on_success("a", 0);
    let permit = ask(&budget, "a").unwrap();
    let Some(Message::Report(report)) = hand.take(0) else { panic!("no report") };
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    assert_eq!((question.key(), amounts(&question)), ("reattempt:2:a", (TOKEN / 5, TOKEN)));
    assert_eq!(report.take(), None, "it is not reported twice");
    drop(permit);
}
