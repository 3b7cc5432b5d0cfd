//! Tests of hedged calls: the permits of their hedges, and the events of their attempts.

use core::time::Duration;

use crate::support::{Bucket, FAILURE};
use reattempt_core::{
    Budget, CallEnd, HedgeCall, HedgeDecision, HedgeEvent, HedgePermits, HedgeTerms, Limits, Random, Resent,
    ServerHint, StopReason, Undone, Verdict,
};

const SECOND: Duration = Duration::from_secs(1);

struct Zero;

impl Random for Zero {
    fn next_u64(&mut self) -> u64 {
        0
    }
}

/// Sends hedges 2, 3, … of a call, each for one token.
fn hedges(bucket: &Bucket, count: u32) -> HedgePermits {
    let mut permits = HedgePermits::default();
    for number in 2..2 + count {
        permits.on_send(number, bucket.acquire("x", &FAILURE, SECOND).unwrap());
    }
    let _ = bucket.log();
    permits
}

#[test]
fn hedges_in_flight_at_the_end_are_paid() {
    let bucket = Bucket::of(10);
    let mut permits = hedges(&bucket, 3);
    let account = permits.end_call(1);
    assert!(account.has_paid());
    account.settle(CallEnd::Succeeded, "x", &bucket);
    assert_eq!(bucket.tokens(), 7);
    assert!(bucket.log().iter().any(|event| event.contains("success x 3")), "all three count");
    drop(hedges(&bucket, 2));
    assert_eq!(bucket.tokens(), 5, "dropped, they were sent");
}

#[test]
fn hedge_refused_on_this_side_is_not_paid() {
    let bucket = Bucket::of(10);
    let mut permits = hedges(&bucket, 1);
    permits.on_refusal(1);
    assert_eq!(bucket.tokens(), 9, "the first attempt has no permit");
    permits.on_refusal(2);
    assert_eq!(bucket.tokens(), 10);
    assert!(!permits.end_call(1).has_paid());
}

#[test]
fn hedge_that_ended_is_paid_once() {
    let bucket = Bucket::of(10);
    let mut permits = hedges(&bucket, 2);
    permits.on_end(1);
    permits.on_end(2);
    permits.on_end(2);
    permits.on_end(3);
    permits.end_call(3).settle(CallEnd::Succeeded, "x", &bucket);
    let log = bucket.log();
    assert!(log.iter().any(|event| event.contains("success x 2")), "{log:?}");
}

#[test]
fn only_the_winning_hedge_succeeded() {
    let end = |winner| {
        let bucket = Bucket::of(10);
        let mut permits = hedges(&bucket, 2);
        permits.on_end(2);
        permits.on_end(3);
        permits.end_call(winner).settle(CallEnd::Succeeded, "x", &bucket);
        bucket.log().iter().filter(|event| *event == "on_retry_end 1 true").count()
    };
    assert_eq!([1, 2, 3].map(end), [0, 0, 1], "of those that ended last");
}

#[test]
fn permits_print_their_numbers() {
    let bucket = Bucket::of(10);
    let mut permits = hedges(&bucket, 2);
    permits.on_end(2);
    assert_eq!(format!("{permits:?}"), "HedgePermits { in_flight: 1, retries: 1, .. }");
}

#[test]
fn fatal_response_ends_every_call() {
    assert_eq!(HedgeEvent::Fatal.ends(), Some(StopReason::Permanent));
    assert_eq!(HedgeEvent::Succeeded.ends(), Some(StopReason::Succeeded));
    assert_eq!(HedgeEvent::Errored.ends(), None);
}

#[test]
fn hedged_call_counts_its_attempts() {
    let terms = HedgeTerms::new(Limits::default(), Duration::from_millis(100));
    let mut call = HedgeCall::new(&terms);
    assert_eq!((call.sent(), call.in_flight()), (1, 1));
    call.next(&terms, HedgeEvent::Sent, Duration::from_millis(100), &mut Zero);
    assert_eq!((call.sent(), call.in_flight()), (2, 2));
    call.next(&terms, HedgeEvent::Failed(ServerHint::None), Duration::from_millis(150), &mut Zero);
    assert_eq!((call.sent(), call.in_flight()), (2, 1));
}

#[test]
fn only_a_response_is_fatal() {
    let failed = Verdict::Transient(FAILURE).with_hint(ServerHint::Stop);
    let of = |verdict: Verdict, responded| HedgeEvent::of(&verdict.into(), responded);
    for responded in [true, false] {
        assert_eq!(of(Verdict::Success, responded), HedgeEvent::Succeeded);
        assert_eq!(HedgeEvent::of(&failed, responded), HedgeEvent::Failed(ServerHint::Stop));
        let unprocessed = of(Verdict::NotProcessed(FAILURE), responded);
        assert_eq!(unprocessed, HedgeEvent::Failed(ServerHint::None));
    }
    assert_eq!(of(Verdict::Permanent, true), HedgeEvent::Fatal);
    assert_eq!(of(Verdict::Permanent, false), HedgeEvent::Errored);
}

#[test]
fn too_long_a_server_delay_ends_hedging() {
    let mut limits = Limits::default();
    limits.max_elapsed = None;
    limits.max_server_delay = SECOND;
    let terms = HedgeTerms::new(limits, SECOND);
    let too_long = SECOND + Duration::from_nanos(1);
    for hint in [ServerHint::After(too_long), ServerHint::AtLeast(too_long)] {
        let mut call = HedgeCall::new(&terms);
        let decision = call.next(&terms, HedgeEvent::Failed(hint), SECOND, &mut Zero);
        assert_eq!(decision, HedgeDecision::Return(StopReason::ServerDelayTooLong));
    }
    for hint in [ServerHint::After(SECOND), ServerHint::Exactly(SECOND)] {
        let mut call = HedgeCall::new(&terms);
        let decision = call.next(&terms, HedgeEvent::Failed(hint), SECOND, &mut Zero);
        assert_eq!(decision, HedgeDecision::Continue { next: Some(2 * SECOND) });
        assert_eq!((call.sent(), call.in_flight()), (1, 0));
    }
}

#[test]
fn terms_end_at_the_earlier_limit() {
    let mut limits = Limits::default();
    limits.max_elapsed = Some(2 * SECOND);
    let mut terms = HedgeTerms::new(limits, SECOND);
    assert_eq!(terms.time_limit(), Some(2 * SECOND));
    terms.deadline = Some(SECOND);
    assert_eq!(terms.time_limit(), Some(SECOND));
    terms.limits.max_elapsed = None;
    assert_eq!(terms.time_limit(), Some(SECOND));
}

// TR-1
#[test]
fn each_kind_is_resent_once() {
    let mut resent = Resent::default();
    for kind in [Undone::NoConnection, Undone::NotDispatched, Undone::Refused] {
        assert!(resent.insert(kind));
        assert!(!resent.insert(kind));
    }
}
