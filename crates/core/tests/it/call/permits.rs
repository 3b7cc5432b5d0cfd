//! Tests of a budget's permits: where they are held, and when they return.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use reattempt_core::{
    Account, Budget, Call, CallEnd, Decision, Failure, Permit, PermitIssuer, ServerHint, StopReason, Terms,
};

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

/// A proxy's budget (SPEC §7, "in flight"), built on this crate alone. Retries in flight are at most a fifth of the
/// calls in flight, but at least 3.
#[derive(Debug, Clone, Default)]
struct InFlight(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    calls: AtomicU32,
    retries: AtomicU32,
}

/// The issuer of permits for calls.
struct Calls(Arc<Counts>);

impl Budget for InFlight {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        let most = (self.0.calls.load(Ordering::Relaxed) / 5).max(3);
        let add = |retries: u32| (retries < most).then_some(retries + 1);
        self.0.retries.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Permit::new(Arc::clone(&self.0), 1))
    }

    fn on_start(&self, _: &str) -> Permit {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        Permit::new(Arc::new(Calls(Arc::clone(&self.0))), 1)
    }

    fn counts_calls(&self) -> bool {
        true
    }
}

impl PermitIssuer for Counts {
    fn give_back(&self, retries: u32) {
        self.retries.fetch_sub(retries, Ordering::Relaxed);
    }

    fn on_retry_end(&self, retries: u32, _: bool) {
        self.give_back(retries);
    }
}

impl PermitIssuer for Calls {
    fn give_back(&self, calls: u32) {
        self.0.calls.fetch_sub(calls, Ordering::Relaxed);
    }
}

impl InFlight {
    fn counts(&self) -> (u32, u32) {
        (self.0.calls.load(Ordering::Relaxed), self.0.retries.load(Ordering::Relaxed))
    }

    fn begin(&self) -> (Call<Seconds>, Account) {
        (Call::new(&Counting), Account::start("x", self))
    }
}

/// Ends a call. Its account now holds the permit of its start.
fn end_call((mut call, start): (Call<Seconds>, Account)) -> Account {
    call.take_account().started_by(start)
}

#[test]
fn proxy_budget_bounds_retries_under_way() {
    let budget = InFlight::default();
    let terms = Terms::new(limits(9));
    let mut calls: Vec<_> = (0..40).map(|_| budget.begin()).collect();
    let retry = |call: &mut Call<Seconds>| decide(call, &terms, &failed(), &budget);
    let granted = calls.iter_mut().filter_map(|(call, _)| (retry(call) == AGAIN).then_some(()));
    assert_eq!(granted.count(), 8, "a fifth of 40");
    assert_eq!(budget.counts(), (40, 8));

    // A failed retry ends before its call requests the next one, so it makes room for it.
    for (call, _) in &mut calls[..8] {
        call.on_send();
    }
    assert_eq!(retry(&mut calls[0].0), Decision::Retry { after: SECOND * 2 });
    assert_eq!(budget.counts(), (40, 8));
    assert_eq!(retry(&mut calls[9].0), Decision::Return(StopReason::BudgetExhausted));

    // However a call ends, neither it nor its retry is counted afterwards.
    for (n, call) in calls.drain(..8).enumerate() {
        match n {
            0 | 1 => drop(call),
            2 | 3 => end_call(call).settle(CallEnd::Succeeded, "x", &budget),
            4 => end_call(call).settle(CallEnd::Permanent(ServerHint::None), "x", &budget),
            5 => end_call(call).settle(CallEnd::Failed, "x", &budget),
            _ => drop(end_call(call)),
        }
    }
    assert_eq!(budget.counts(), (32, 0));
    drop(calls);
    assert_eq!(budget.counts(), (0, 0));

    let mut few: Vec<_> = (0..5).map(|_| budget.begin()).collect();
    let granted = few.iter_mut().filter_map(|(call, _)| (retry(call) == AGAIN).then_some(()));
    assert_eq!(granted.count(), 3, "at least 3");
}

#[test]
fn proxy_budget_works_in_a_pair() {
    let (in_flight, bucket) = (InFlight::default(), Bucket::of(1));
    let pair = (in_flight.clone(), bucket.clone());
    assert!(pair.counts_calls());
    let terms = Terms::new(limits(9));
    let mut calls: Vec<_> = (0..2).map(|_| (Call::new(&Counting), Account::start("x", &pair))).collect();
    assert_eq!(decide(&mut calls[0].0, &terms, &failed(), &pair), AGAIN);
    let refused = decide(&mut calls[1].0, &terms, &failed(), &pair);
    assert_eq!(refused, Decision::Return(StopReason::BudgetExhausted), "no token is left");
    assert_eq!(in_flight.counts(), (2, 1), "the refused retry is not under way");
    drop(calls);
    assert_eq!((in_flight.counts(), bucket.tokens()), ((0, 0), 1));
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

/// A call's permit is held until the call ends, with or without hedges.
#[test]
fn account_holds_the_permit_of_its_call() {
    let budget = InFlight::default();
    let account = Account::start("x", &budget);
    assert_eq!(budget.counts(), (1, 0));
    drop(account);
    assert_eq!(budget.counts(), (0, 0));

    let mut hedges = reattempt_core::HedgePermits::default();
    hedges.start("x", &budget);
    let account = hedges.end_call(1);
    assert_eq!(budget.counts(), (1, 0));
    drop(account);
    assert_eq!(budget.counts(), (0, 0));
}
