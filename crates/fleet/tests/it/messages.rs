//! Tests of the events of one question, in every order.

use reattempt_core::Permit;
use reattempt_fleet::courier::{Message, Question};
use reattempt_fleet::rule::TOKEN;

use crate::support::{ByHand, amounts, ask, poll};
use std::task::Poll;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Dropped,
    Failed,
    Succeeded,
}

fn end_permit(permit: Permit, end: End) {
    match end {
        End::Dropped => drop(permit),
        End::Failed => drop(permit.spend()),
        End::Succeeded => permit.spend().succeed(),
    }
}

fn question(hand: &ByHand) -> Question {
    match hand.take(0) {
        Some(Message::Question(question)) => question,
        other => panic!("{other:?}"),
    }
}

/// Returns the tokens that are reported.
fn reported(hand: &ByHand) -> u64 {
    let mut sum = 0;
    while let Some(Message::Report(report)) = hand.take(0) {
        sum += report.take().unwrap_or(0);
    }
    sum
}

/// Three tokens are returned at most once, and only if the retry was granted. The cost is returned at most once,
/// if the retry was not sent. Never both.
// F-6
#[test]
fn any_order_returns_tokens_once() {
    for ending in [End::Dropped, End::Failed, End::Succeeded] {
        for answer in [Some(true), Some(false), None] {
            for is_late in [false, true] {
                for ends_first in [false, true] {
                    let hand = ByHand::default();
                    let budget = hand.budget();
                    let permit = ask(&budget, "a").unwrap();
                    let question = question(&hand);
                    if is_late {
                        question.is_late();
                        assert_eq!(poll(&permit), Poll::Ready(false));
                    }
                    let give = |question: Question| match answer {
                        Some(answer) => question.answer(Ok(answer)),
                        None => drop(question),
                    };
                    if ends_first {
                        end_permit(permit, ending);
                        give(question);
                    } else {
                        give(question);
                        // A late answer does not change the confirmation: refused, because no retry has succeeded.
                        let confirmed = !is_late && answer != Some(false);
                        assert_eq!(poll(&permit), Poll::Ready(confirmed));
                        end_permit(permit, ending);
                    }
                    let expected = match (answer, ending) {
                        (Some(true), End::Dropped) => TOKEN,
                        (Some(true), End::Succeeded) => 3 * TOKEN,
                        _ => 0,
                    };
                    // No report is sent for a second to a store that was late.
                    hand.advance(Duration::from_secs(2));
                    let order = (ending, answer, is_late, ends_first);
                    assert_eq!(reported(&hand), expected, "{order:?}");
                }
            }
        }
    }
}

#[test]
fn success_of_a_dear_retry_returns_nothing() {
    use reattempt_core::{Budget, Failure, FailureKind};
    let hand = ByHand::default();
    let budget = hand.budget();
    let now = std::time::Duration::ZERO;
    let throttled = Failure::new(FailureKind::Throttled);
    let retry = budget.acquire_after_failure("a", &throttled.into(), now).unwrap();
    let hedge = budget.acquire("b", &Failure::new(FailureKind::Timeout), now).unwrap();
    for permit in [retry, hedge] {
        let question = question(&hand);
        assert_eq!(amounts(&question), (0, 2 * TOKEN));
        question.answer(Ok(true));
        permit.spend().succeed();
    }
    assert_eq!(reported(&hand), 0);
}

#[test]
fn debug_output_of_a_question_is_short() {
    let hand = ByHand::default();
    let _permit = ask(&hand.budget().prefix("shop"), "a").unwrap();
    let text = format!("{:?}", question(&hand));
    assert!(text.contains("member: Member { prefix: \"shop\", .. }, destination: "), "{text}");
}

/// A permit that a guard on this side has returned is still one permit.
#[test]
fn unsent_retry_returns_its_cost() {
    let hand = ByHand::default();
    let permit = ask(&hand.budget(), "a").unwrap();
    question(&hand).answer(Ok(true));
    drop(permit.spend().unsent());
    assert_eq!(reported(&hand), TOKEN);
}

#[test]
fn answer_wakes_the_driver() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Wake, Waker};

    #[derive(Default)]
    struct Woken(AtomicU32);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let hand = ByHand::default();
    let permit = ask(&hand.budget(), "a").unwrap();
    let (first, second) = (Arc::new(Woken::default()), Arc::new(Woken::default()));
    for woken in [&first, &second] {
        let waker = Waker::from(Arc::clone(woken));
        assert!(permit.poll_confirmed(&mut Context::from_waker(&waker)).is_pending());
    }
    question(&hand).answer(Ok(true));
    let count = |woken: &Woken| woken.0.load(Ordering::Relaxed);
    assert_eq!((count(&first), count(&second)), (0, 1), "the one that polled last");
}
