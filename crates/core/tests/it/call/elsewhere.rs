//! Tests of attempts after which another endpoint is left.

use core::time::Duration;

use reattempt_core::guard::{GuardKind, Reason, Refused};
use reattempt_core::{
    Call, Decision, Delays, FailedAttempt, Failure, FailureKind, NextRetry, Random, Schedule, ServerHint, StopReason,
    Terms, Verdict,
};

use super::{AGAIN, Counting, SECOND, Zero, decide, failed, limits, terms};
use crate::support::{Bucket, FAILURE};

const AT_ONCE: Decision = Decision::Retry { after: Duration::ZERO };

/// A schedule of two retries, which ends if it gets any others.
struct TwoRetries;

struct Asked(u32);

impl Schedule for TwoRetries {
    type Delays = Asked;

    fn delays(&self) -> Asked {
        Asked(0)
    }
}

impl Delays for Asked {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        let previous = (self.0 > 0).then_some(SECOND);
        let expected = NextRetry::new(self.0, FAILURE).after(previous);
        self.0 += 1;
        (*retry == expected).then_some(SECOND)
    }
}

/// Retries sent to another endpoint at once count as attempts, cost a token each, and do not advance the schedule.
// E-18
#[test]
fn retries_elsewhere_leave_schedule_alone() {
    let (bucket, schedule) = (Bucket::of(10), TwoRetries);
    let mut call = Call::new(&schedule);
    let terms = Terms::new(limits(9));
    let after = [true, false, true, true, false].map(|elsewhere| {
        let failed = failed().elsewhere(elsewhere);
        let decision = call.failed(&terms, &failed, &schedule, &bucket, &mut Zero);
        call.on_send();
        let Decision::Retry { after } = decision else { panic!("{decision:?}") };
        assert_eq!(call.last_delay(), Some(after));
        after.as_secs()
    });
    assert_eq!(after, [0, 1, 0, 0, 1]);
    assert_eq!((call.attempt(), bucket.tokens()), (6, 5));
    let stopped = Decision::Return(StopReason::BudgetExhausted);
    let failed = failed().elsewhere(true);
    let decision = call.failed(&terms, &failed, &schedule, &Bucket::of(0), &mut Zero);
    assert_eq!(decision, stopped);
}

/// If one endpoint's guard has refused, the request is sent to another one under the same number and permit.
// E-18
#[test]
fn refused_attempt_goes_elsewhere_at_once() {
    let bucket = Bucket::of(10);
    let refused = Refused::new(GuardKind::CIRCUIT_BREAKER, Reason::Open).after(SECOND * 60);
    let unproven = FailedAttempt { refused: Some(refused), ..failed() };
    let proof = FailedAttempt::new(Verdict::not_processed(), "x", Duration::ZERO);
    let refused = FailedAttempt { refused: Some(refused), ..proof };
    let (terms, mut call) = (Terms::new(limits(3)), Call::new(&Counting));
    assert_eq!(decide(&mut call, &terms, &failed().elsewhere(true), &bucket), AT_ONCE);
    call.on_send();
    for _ in 0..3 {
        assert_eq!(decide(&mut call, &terms, &refused.elsewhere(true), &bucket), AT_ONCE);
        call.on_send();
        assert_eq!((call.attempt(), bucket.tokens()), (2, 9));
    }
    let stopped = Decision::Return(StopReason::Refused);
    assert_eq!(decide(&mut call, &terms, &refused.elsewhere(true), &bucket), stopped);
    assert_eq!(bucket.tokens(), 10);

    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms, &refused, &bucket), stopped, "nowhere else to go");
    let mut call = Call::new(&Counting);
    let unproven = decide(&mut call, &terms, &unproven.elsewhere(true), &bucket);
    assert_eq!(unproven, stopped, "an earlier hop may have been carried out there");
    let mut call = Call::new(&Counting);
    let one = Terms::new(limits(1));
    assert_eq!(decide(&mut call, &one, &refused.elsewhere(true), &bucket), stopped);
}

/// The wait of a failing server does not bind the retry at another one. A limit on the caller does, and so does gRPC's
/// pushback.
// C-13, trap 64
#[test]
fn wait_binds_the_server_that_asked() {
    let throttled = Failure::new(FailureKind::Throttled);
    let asks = |verdict: Verdict, hint| FailedAttempt {
        responded: true,
        ..FailedAttempt::new(verdict.with_hint(hint), "x", Duration::ZERO)
    };
    let decision = |attempt: FailedAttempt<'_>| decide(&mut Call::new(&Counting), &terms(), &attempt, &Bucket::of(9));
    let wait = ServerHint::After(SECOND * 120);
    let drains = asks(Verdict::Transient(FAILURE), wait);
    assert_eq!(decision(drains), Decision::Return(StopReason::ServerDelayTooLong));
    assert_eq!(decision(drains.elsewhere(true)), AGAIN);
    let limited = |seconds: u32| asks(Verdict::NotProcessed(throttled), ServerHint::After(SECOND * seconds));
    assert_eq!(decision(limited(120).elsewhere(true)), Decision::Return(StopReason::ServerDelayTooLong));
    assert_eq!(decision(limited(5).elsewhere(true)), Decision::Retry { after: SECOND * 5 });
    let pushed_back = asks(Verdict::Transient(FAILURE), ServerHint::Exactly(SECOND * 5));
    assert_eq!(decision(pushed_back.elsewhere(true)), Decision::Retry { after: SECOND * 5 });
    let stops = asks(Verdict::Transient(FAILURE), ServerHint::Stop);
    assert_eq!(decision(stops.elsewhere(true)), Decision::Return(StopReason::ServerSaidStop));
}
