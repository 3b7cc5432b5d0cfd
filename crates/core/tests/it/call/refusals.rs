//! Tests of attempts that a guard on this side refused.

use core::time::Duration;

use reattempt_core::guard::{GuardKind, Reason, Refused};
use reattempt_core::{Call, Decision, FailedAttempt, StopReason, Terms, Verdict};

use super::{AGAIN, Counting, SECOND, decide, failed, limits, terms};
use crate::support::{Bucket, FAILURE};

fn refused(wait: impl Into<Option<Duration>>) -> FailedAttempt<'static> {
    let refused = Refused::new(GuardKind::CIRCUIT_BREAKER, Reason::Open);
    let refused = wait.into().map_or(refused, |wait| refused.after(wait));
    FailedAttempt { refused: Some(refused), ..failed() }
}

/// Returns an attempt that a limit refused.
fn full(wait: Duration) -> FailedAttempt<'static> {
    let refused = Refused::new(GuardKind::RATE_LIMIT, Reason::Full).after(wait);
    FailedAttempt { refused: Some(refused), ..failed() }
}

/// An open breaker's callers return together, so they wait less than callers of a limit.
// G-7
#[test]
fn refused_attempt_waits_if_that_fits() {
    let stopped = Decision::Return(StopReason::Refused);
    let hour = Duration::from_secs(3600);
    let cases = [
        (refused(SECOND), AGAIN),
        (refused(Duration::ZERO), Decision::Retry { after: Duration::ZERO }),
        (refused(None), stopped),
        (refused(hour), stopped),
        (refused(SECOND + Duration::from_nanos(1)), stopped),
        (full(SECOND * 5), Decision::Retry { after: SECOND * 5 }),
        (full(SECOND * 5 + Duration::from_nanos(1)), stopped),
        (FailedAttempt { until_deadline: Some(SECOND), ..refused(SECOND) }, stopped),
        (FailedAttempt { until_deadline: Some(SECOND * 2), ..refused(SECOND) }, AGAIN),
        (FailedAttempt { replayable: false, ..refused(SECOND) }, stopped),
        (refused(SECOND).elapsed(Duration::from_secs(30)), stopped),
    ];
    for (number, (attempt, expected)) in cases.into_iter().enumerate() {
        let bucket = Bucket::of(10);
        let mut call = Call::new(&Counting);
        assert_eq!(decide(&mut call, &terms(), &attempt, &bucket), expected, "case {number}");
        assert_eq!(call.attempt(), 1);
        assert!(bucket.log().is_empty(), "case {number}");
    }
}

// G-7
#[test]
fn refusals_are_resent_so_many_times() {
    let bucket = Bucket::of(10);
    let mut call = Call::new(&Counting);
    for _ in 0..3 {
        assert_eq!(decide(&mut call, &terms(), &refused(SECOND), &bucket), AGAIN);
        assert!(call.resends());
        call.on_send();
    }
    let stopped = Decision::Return(StopReason::Refused);
    assert_eq!(decide(&mut call, &terms(), &refused(SECOND), &bucket), stopped);
    assert_eq!((call.attempt(), bucket.tokens()), (1, 10));
}

// G-22
#[test]
fn refused_retry_keeps_its_permit() {
    let bucket = Bucket::of(10);
    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms(), &failed(), &bucket), AGAIN);
    call.on_send();
    bucket.log();
    assert_eq!(decide(&mut call, &terms(), &refused(SECOND), &bucket), AGAIN);
    call.on_send();
    assert_eq!((call.attempt(), bucket.tokens()), (2, 9));
    assert!(bucket.log().is_empty(), "sent again, the retry is paid for already");
    let stopped = Decision::Return(StopReason::Refused);
    assert_eq!(decide(&mut call, &terms(), &refused(None), &bucket), stopped);
    assert_eq!(bucket.tokens(), 10);
    assert!(!call.take_account().has_paid());
}

// G-7
#[test]
fn refused_call_of_one_attempt_ends() {
    let mut call = Call::new(&Counting);
    let decision = decide(&mut call, &Terms::new(limits(1)), &refused(SECOND), &Bucket::of(10));
    assert_eq!(decision, Decision::Return(StopReason::Refused));
}

/// An unproven refusal needs a repeatable call, because an earlier hop, or another copy of the request, may have been
/// processed.
// trap 48
#[test]
fn unproven_refusal_needs_a_repeatable_call() {
    let stopped = Decision::Return;
    for (verdict, repeatable, expected) in [
        (Verdict::NotProcessed(FAILURE), false, AGAIN),
        (Verdict::Transient(FAILURE), true, AGAIN),
        (Verdict::Transient(FAILURE), false, stopped(StopReason::NotRepeatable)),
        (Verdict::Transient(FAILURE.after_hop()), false, stopped(StopReason::EarlierHop)),
        (Verdict::Permanent, true, stopped(StopReason::Permanent)),
    ] {
        let mut terms = terms();
        terms.repeatable = repeatable;
        let attempt = FailedAttempt { classification: verdict.into(), ..refused(SECOND) };
        let decision = decide(&mut Call::new(&Counting), &terms, &attempt, &Bucket::of(10));
        assert_eq!(decision, expected, "{verdict:?}, repeatable: {repeatable}");
    }
}
