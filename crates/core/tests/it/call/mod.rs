//! Tests of the state of one call: what it requests and reports, attempt by attempt.

mod confirmation;
mod elsewhere;
mod permits;
mod refusals;
mod replaced;

use core::time::Duration;
use std::sync::atomic::{AtomicU32, Ordering};

use reattempt_core::{
    Budget, Call, CallEnd, Classification, Decision, Delays, FailedAttempt, Failure, Limits, NextRetry, Random,
    Schedule, SentAt, ServerHint, StopReason, Terms, Undone, Verdict,
};

use crate::support::{Bucket, FAILURE};

const SECOND: Duration = Duration::from_secs(1);
const AGAIN: Decision = Decision::Retry { after: SECOND };

/// A schedule that waits 1 s, 2 s, 3 s, … and counts by itself.
#[derive(Debug)]
struct Counting;

#[derive(Debug)]
struct Seconds(u32);

impl Schedule for Counting {
    type Delays = Seconds;

    fn delays(&self) -> Seconds {
        Seconds(0)
    }
}

impl Delays for Seconds {
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        self.0 += 1;
        Some(SECOND * self.0)
    }
}

struct Zero;

impl Random for Zero {
    fn next_u64(&mut self) -> u64 {
        0
    }
}

fn terms() -> Terms {
    Terms::new(Limits::default())
}

fn failed() -> FailedAttempt<'static> {
    FailedAttempt::new(Verdict::Transient(FAILURE), "x", Duration::ZERO)
}

fn decide(call: &mut Call<Seconds>, terms: &Terms, attempt: &FailedAttempt<'_>, budget: &impl Budget) -> Decision {
    call.failed(terms, attempt, &Counting, budget, &mut Zero)
}

#[test]
fn retried_call_reports_each_event_once() {
    let bucket = Bucket::of(10);
    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms(), &failed(), &bucket), AGAIN);
    assert_eq!((call.attempt(), bucket.tokens()), (1, 9));
    call.on_send();
    assert_eq!((call.attempt(), call.last_delay()), (2, Some(SECOND)));
    let again = decide(&mut call, &terms(), &failed(), &bucket);
    assert_eq!(again, Decision::Retry { after: SECOND * 2 });
    call.on_send();
    call.take_account().settle(CallEnd::Succeeded, "x", &bucket);
    let events = [
        "on_failure x server (503)",
        "acquire x server (503)",
        "on_retry_end 1 false",
        "on_failure x server (503)",
        "acquire x server (503)",
        "on_retry_end 1 true",
        "on_success x 2",
    ];
    assert_eq!(bucket.log(), events);
}

#[test]
fn each_end_is_reported_as_what_it_is() {
    let retried = |end| {
        let bucket = Bucket::of(10);
        let mut call = Call::new(&Counting);
        decide(&mut call, &terms(), &failed(), &bucket);
        call.on_send();
        bucket.log();
        call.take_account().settle(end, "x", &bucket);
        bucket.log()
    };
    assert_eq!(retried(CallEnd::Succeeded), ["on_retry_end 1 true", "on_success x 1"]);
    let permanent = ["on_retry_end 1 false", "on_permanent_failure x Stop 1"];
    assert_eq!(retried(CallEnd::Permanent(ServerHint::Stop)), permanent);
    assert_eq!(retried(CallEnd::Failed), ["on_retry_end 1 false"], "it earns nothing");
}

/// A retry that anything other than the budget prevents is recorded as a failure, and takes no token.
#[test]
fn refused_retry_is_recorded_as_a_failure() {
    let none = unrepeatable(terms());
    let late = FailedAttempt { until_deadline: Some(SECOND), ..failed() };
    for (terms, attempt, reason) in
        [(none, failed(), StopReason::NotRepeatable), (terms(), late, StopReason::DeadlineExceeded)]
    {
        let bucket = Bucket::of(10);
        let mut call = Call::new(&Counting);
        assert_eq!(decide(&mut call, &terms, &attempt, &bucket), Decision::Return(reason));
        assert_eq!(bucket.log(), ["on_failure x server (503)"]);
    }
}

#[test]
fn forbidden_call_reports_no_failure() {
    for (terms, reason) in
        [(forbidden(StopReason::Nested), StopReason::Nested), (Terms::new(limits(1)), StopReason::AttemptsExhausted)]
    {
        let bucket = Bucket::of(10);
        let mut call = Call::new(&Counting);
        assert_eq!(decide(&mut call, &terms, &failed(), &bucket), Decision::Return(reason));
        assert!(bucket.log().is_empty());
    }
}

fn limits(max_attempts: u32) -> Limits {
    let mut limits = Limits::default();
    limits.max_attempts = max_attempts;
    limits
}

fn unrepeatable(mut terms: Terms) -> Terms {
    terms.repeatable = false;
    terms
}

fn forbidden(reason: StopReason) -> Terms {
    let mut terms = terms();
    terms.forbidden = Some(reason);
    terms
}

#[test]
fn failed_source_ends_the_call() {
    let bucket = Bucket::of(10);
    let mut call = Call::new(&Counting);
    let attempt = FailedAttempt { source_failed: true, undone: Some(Undone::NotDispatched), ..failed() };
    let decision = decide(&mut call, &terms(), &attempt, &bucket);
    assert_eq!(decision, Decision::Return(StopReason::Permanent));
    assert!(bucket.log().is_empty());
}

/// A delay of zero needs no timer. Any other retry's permit is returned.
#[test]
fn delay_without_a_timer_ends_the_call() {
    let bucket = Bucket::of(10);
    let unable = FailedAttempt { can_wait: || false, ..failed() };
    let decision = decide(&mut Call::new(&Counting), &terms(), &unable, &bucket);
    assert_eq!(decision, Decision::Return(StopReason::NoTimer));
    assert_eq!(bucket.tokens(), 10);
    let now = Verdict::Transient(FAILURE).with_hint(ServerHint::Exactly(Duration::ZERO));
    let unable = FailedAttempt { classification: now, ..unable };
    let decision = decide(&mut Call::new(&Counting), &terms(), &unable, &bucket);
    assert_eq!(decision, Decision::Retry { after: Duration::ZERO });
}

/// Each kind is resent once per call, whatever the limits and the budget (TR-1, TR-2, TR-4).
#[test]
fn unprocessed_is_resent_once_for_each_kind() {
    let bucket = Bucket::of(0);
    let permanent = |kind| FailedAttempt {
        undone: Some(kind),
        classification: Classification::new(Verdict::Permanent),
        ..failed()
    };
    let terms = unrepeatable(Terms::new(limits(1)));
    let mut call = Call::new(&Counting);
    for kind in [Undone::Refused, Undone::NotDispatched, Undone::NoConnection] {
        assert_eq!(decide(&mut call, &terms, &permanent(kind), &bucket), Decision::Resend);
        assert!(call.resends());
        call.on_send();
        assert_eq!(call.attempt(), 1, "it keeps its number");
    }
    for kind in [Undone::Refused, Undone::NotDispatched, Undone::NoConnection] {
        let decision = decide(&mut call, &terms, &permanent(kind), &bucket);
        assert_eq!(decision, Decision::Return(StopReason::Permanent));
        assert!(!call.resends());
    }
    assert!(bucket.log().is_empty());
}

#[test]
fn unprocessed_is_not_resent_in_vain() {
    let attempt = FailedAttempt {
        undone: Some(Undone::Refused),
        classification: Classification::new(Verdict::Permanent),
        ..failed()
    };
    let forbidden = forbidden(StopReason::Forbidden);
    for (terms, attempt) in [
        (terms(), FailedAttempt { replayable: false, ..attempt }),
        (terms(), FailedAttempt { until_deadline: Some(Duration::ZERO), ..attempt }),
        (forbidden, attempt),
    ] {
        let mut call = Call::new(&Counting);
        let decision = decide(&mut call, &terms, &attempt, &Bucket::of(1));
        assert_eq!(decision, Decision::Return(StopReason::Permanent));
    }
}

/// A pushback restarts the backoff (PB-5).
#[test]
fn pushback_starts_the_schedule_anew() {
    let exactly = |delay| FailedAttempt {
        classification: Verdict::Transient(FAILURE).with_hint(ServerHint::Exactly(delay)),
        ..failed()
    };
    let (terms, bucket) = (Terms::new(limits(9)), Bucket::of(10));
    let mut call = Call::new(&Counting);
    let mut next = |attempt: FailedAttempt<'_>| {
        let decision = decide(&mut call, &terms, &attempt, &bucket);
        call.on_send();
        decision
    };
    assert_eq!(next(failed()), AGAIN);
    assert_eq!(next(failed()), Decision::Retry { after: SECOND * 2 });
    assert_eq!(next(exactly(SECOND * 7)), Decision::Retry { after: SECOND * 7 });
    assert_eq!(next(failed()), AGAIN);
}

#[test]
fn schedule_is_given_failure_and_admission() {
    struct Recorder(AtomicU32);
    impl Schedule for Recorder {
        type Delays = Seconds;
        fn delays(&self) -> Seconds {
            Seconds(0)
        }
        fn on_failure(&self, sent_at: SentAt, failure: &Failure, _: &mut dyn Random) {
            assert_eq!((sent_at, *failure), (SentAt(3), FAILURE));
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    let schedule = Recorder(AtomicU32::new(0));
    let attempt = failed().sent_at(SentAt(3));
    // Even if no retry may follow, because shared pacing must still move.
    let forbidden = forbidden(StopReason::Nested);
    for terms in [terms(), forbidden] {
        Call::new(&schedule).failed(&terms, &attempt, &schedule, &Bucket::of(1), &mut Zero);
    }
    assert_eq!(schedule.0.load(Ordering::Relaxed), 2);
}

/// A success ends the call, whatever the driver reports.
#[test]
fn success_and_permanent_end_the_call() {
    for (verdict, reason) in [(Verdict::Success, StopReason::Succeeded), (Verdict::Permanent, StopReason::Permanent)] {
        let attempt = FailedAttempt::new(verdict, "x", Duration::ZERO);
        let bucket = Bucket::of(10);
        let mut call = Call::new(&Counting);
        assert_eq!(decide(&mut call, &terms(), &attempt, &bucket), Decision::Return(reason));
        assert!(bucket.log().is_empty());
    }
}

#[test]
fn revoked_resend_is_an_attempt_like_any() {
    let bucket = Bucket::of(10);
    let undone = FailedAttempt { undone: Some(Undone::Refused), ..failed() };
    let mut call = Call::new(&Counting);
    assert_eq!(decide(&mut call, &terms(), &undone, &bucket), Decision::Resend);
    call.revoke();
    assert!(!call.resends());
    call.on_send();
    assert_eq!(call.attempt(), 2);
}

#[test]
fn call_prints_where_it_stands() {
    let mut call = Call::new(&Counting);
    decide(&mut call, &terms(), &failed(), &Bucket::of(10));
    call.on_send();
    let expected = "Call { attempt: 2, last_delay: Some(1s), resends: false, .. }";
    assert_eq!(format!("{call:?}"), expected);
}

/// If the shared delay equals the server's, the text names the schedule's interval.
#[test]
fn shared_delay_equal_to_the_hint_is_named() {
    struct Shared;
    impl Schedule for Shared {
        type Delays = Self;
        fn delays(&self) -> Self {
            Self
        }
    }
    impl Delays for Shared {
        fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
            Some(SECOND * 40)
        }
        fn is_shared(&self) -> bool {
            true
        }
    }
    for (asked, reason) in [(40, StopReason::IntervalTooLong), (41, StopReason::ElapsedExhausted)] {
        let hint = ServerHint::AtLeast(SECOND * asked);
        let classification = Verdict::Transient(FAILURE).with_hint(hint);
        let attempt = FailedAttempt { classification, ..failed() };
        let mut call = Call::new(&Shared);
        let decision = call.failed(&terms(), &attempt, &Shared, &Bucket::of(10), &mut Zero);
        assert_eq!(decision, Decision::Return(reason), "{asked} s");
    }
}

/// The last hop's proof says nothing about the hops before it.
#[test]
fn failure_after_a_hop_is_named() {
    let hop = FAILURE.after_hop();
    assert!(hop.is_after_hop() && !FAILURE.is_after_hop());
    let terms = unrepeatable(terms());
    for (failure, reason) in [(hop, StopReason::EarlierHop), (FAILURE, StopReason::NotRepeatable)] {
        let attempt = FailedAttempt::new(Verdict::Transient(failure), "x", Duration::ZERO);
        let mut call = Call::new(&Counting);
        let decision = decide(&mut call, &terms, &attempt, &Bucket::of(10));
        assert_eq!(decision, Decision::Return(reason));
    }
}
