//! Tests of a budget's permits: where they are held, and when they return.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use reattempt_core::{Budget, Call, CallEnd, Decision, Failure, Permit, PermitIssuer, ServerHint, StopReason, Terms};

use super::{AGAIN, Counting, SECOND, Seconds, decide, failed, limits, terms};
use crate::support::Bucket;

// trap 11
#[test]
fn dropped_call_returns_its_permit() {
    let bucket = Bucket::of(10);
    let granted = || {
        let mut call = Call::new(&Counting);
        assert_eq!(decide(&mut call, &terms(), &failed(), &bucket), AGAIN);
        bucket.log();
        call
    };
    drop(granted());
    assert_eq!(bucket.log(), ["give_back 1"]);
    granted().revoke();
    assert_eq!(bucket.log(), ["give_back 1"]);
    let mut ended = granted();
    ended.take_account().settle(CallEnd::Failed, "x", &bucket);
    assert_eq!(bucket.log(), ["give_back 1"]);
    drop(ended);
    let mut sent = granted();
    sent.on_send();
    drop(sent);
    assert_eq!(bucket.log(), ["on_retry_end 1 false"]);
    assert_eq!(bucket.tokens(), 9);
}

/// A proxy's budget (SPEC §7, "in flight"), built on this crate alone: at most so many retries are in flight.
#[derive(Debug, Clone, Default)]
struct InFlight(Arc<AtomicU32>);

const MOST: u32 = 8;

impl Budget for InFlight {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        let add = |retries: u32| (retries < MOST).then_some(retries + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Permit::new(Arc::new(self.clone()), 1))
    }
}

impl PermitIssuer for InFlight {
    fn give_back(&self, retries: u32) {
        self.0.fetch_sub(retries, Ordering::Relaxed);
    }

    fn on_retry_end(&self, retries: u32, _: bool) {
        self.give_back(retries);
    }
}

impl InFlight {
    fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn proxy_budget_bounds_retries_under_way() {
    let budget = InFlight::default();
    let terms = Terms::new(limits(9));
    let mut calls: Vec<_> = (0..40).map(|_| Call::new(&Counting)).collect();
    let retry = |call: &mut Call<Seconds>| decide(call, &terms, &failed(), &budget);
    let granted = calls.iter_mut().filter_map(|call| (retry(call) == AGAIN).then_some(()));
    assert_eq!(granted.count(), 8);
    assert_eq!(budget.count(), 8);

    // A failed retry ends before its call requests the next one, so it makes room for it.
    for call in &mut calls[..8] {
        call.on_send();
    }
    assert_eq!(retry(&mut calls[0]), Decision::Retry { after: SECOND * 2 });
    assert_eq!(budget.count(), 8);
    assert_eq!(retry(&mut calls[9]), Decision::Return(StopReason::BudgetExhausted));

    // However a call ends, its retry is not counted afterwards.
    for (n, mut call) in calls.drain(..8).enumerate() {
        match n {
            0 | 1 => drop(call),
            2 | 3 => call.take_account().settle(CallEnd::Succeeded, "x", &budget),
            4 => call.take_account().settle(CallEnd::Permanent(ServerHint::None), "x", &budget),
            5 => call.take_account().settle(CallEnd::Failed, "x", &budget),
            _ => drop(call.take_account()),
        }
    }
    assert_eq!(budget.count(), 0);
}

#[test]
fn proxy_budget_works_in_a_pair() {
    let (in_flight, bucket) = (InFlight::default(), Bucket::of(1));
    let pair = (in_flight.clone(), bucket.clone());
    let terms = Terms::new(limits(9));
    let mut calls: Vec<_> = (0..2).map(|_| Call::new(&Counting)).collect();
    assert_eq!(decide(&mut calls[0], &terms, &failed(), &pair), AGAIN);
    let refused = decide(&mut calls[1], &terms, &failed(), &pair);
    assert_eq!(refused, Decision::Return(StopReason::BudgetExhausted), "no token is left");
    assert_eq!(in_flight.count(), 1, "the refused retry is not under way");
    drop(calls);
    assert_eq!((in_flight.count(), bucket.tokens()), (0, 1));
}

#[test]
fn revoked_retry_returns_its_permit() {
    let bucket = Bucket::of(10);
    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms(), &failed(), &bucket), AGAIN);
    assert_eq!(bucket.tokens(), 9);
    call.revoke();
    assert_eq!(bucket.tokens(), 10);
}
