//! Tests of the confirmation of a retry by a budget with a remote store.

use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use reattempt_core::{Budget, Call, Failure, Permit, PermitIssuer, StopReason};

use super::{AGAIN, Counting, decide, failed, terms};
use crate::support::{Bucket, FAILURE};

/// A budget whose answer the test sets. It counts the permits that were returned.
#[derive(Clone, Default)]
struct Asking(Arc<Mutex<(Option<bool>, u32)>>);

impl Asking {
    fn answer(&self, confirmed: bool) {
        self.0.lock().unwrap().0 = Some(confirmed);
    }

    fn returned(&self) -> u32 {
        self.0.lock().unwrap().1
    }
}

impl Budget for Asking {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        Some(Permit::new(Arc::new(self.clone()), 1))
    }
}

impl PermitIssuer for Asking {
    fn give_back(&self, cost: u32) {
        self.0.lock().unwrap().1 += cost;
    }

    fn poll_confirmed(&self, _: &mut Context<'_>) -> Poll<bool> {
        self.0.lock().unwrap().0.map_or(Poll::Pending, Poll::Ready)
    }
}

fn permit(budget: &impl Budget) -> Permit {
    budget.acquire("a", &FAILURE, Duration::ZERO).unwrap()
}

fn poll(permit: &Permit) -> Poll<bool> {
    permit.poll_confirmed(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn own_answer_confirms_at_once() {
    assert_eq!(poll(&Permit::free()), Poll::Ready(true));
    assert_eq!(poll(&permit(&Bucket::of(1))), Poll::Ready(true));
}

#[test]
fn pair_needs_both_confirmations() {
    use Poll::{Pending, Ready};
    const ANSWERS: [Option<bool>; 3] = [None, Some(true), Some(false)];
    for (first, second) in ANSWERS.into_iter().flat_map(|a| ANSWERS.map(|b| (a, b))) {
        let budgets = (Asking::default(), Asking::default());
        first.into_iter().for_each(|answer| budgets.0.answer(answer));
        second.into_iter().for_each(|answer| budgets.1.answer(answer));
        let expected = match (first, second) {
            (Some(true), Some(true)) => Ready(true),
            (Some(false), _) | (_, Some(false)) => Ready(false),
            _ => Pending,
        };
        assert_eq!(poll(&permit(&budgets)), expected, "{first:?} {second:?}");
    }
}

#[test]
fn refused_retry_returns_its_permit() {
    let budget = Asking::default();
    let cx = &mut Context::from_waker(Waker::noop());
    let mut call = Call::new(&Counting);
    assert_eq!(call.poll_confirmed(cx), Poll::Ready(Ok(())), "nothing was granted");
    assert_eq!(decide(&mut call, &terms(), &failed(), &budget), AGAIN);
    assert_eq!(call.poll_confirmed(cx), Poll::Pending);
    assert_eq!(budget.returned(), 0);
    budget.answer(false);
    assert_eq!(call.poll_confirmed(cx), Poll::Ready(Err(StopReason::BudgetExhausted)));
    assert_eq!(budget.returned(), 1);
    assert_eq!(call.attempt(), 1);
}

#[test]
fn confirmed_retry_holds_its_permit() {
    let budget = Asking::default();
    let cx = &mut Context::from_waker(Waker::noop());
    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms(), &failed(), &budget), AGAIN);
    budget.answer(true);
    assert_eq!(call.poll_confirmed(cx), Poll::Ready(Ok(())));
    call.on_send();
    drop(call);
    assert_eq!(budget.returned(), 0);
}
