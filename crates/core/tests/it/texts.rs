//! Tests of the exact texts that people read at night.

use core::error::Error;

use core::time::Duration;

use reattempt_core::{ConfigError, Failure, FailureKind, Rounded, StopReason};

#[test]
fn durations_have_three_digits() {
    let rows = [
        (Duration::ZERO, "0s"),
        (Duration::from_nanos(999), "999ns"),
        (Duration::from_nanos(1_234_567), "1.23ms"),
        (Duration::from_micros(99_950), "100ms"),
        (Duration::from_secs(7_205), "7210s"),
        (Duration::MAX, "18446744073709551615.999999999s"),
    ];
    for (time, text) in rows {
        assert_eq!(Rounded(time).to_string(), text);
    }
}

#[test]
fn stop_reasons() {
    for (reason, text) in [
        (StopReason::Succeeded, "succeeded"),
        (StopReason::Permanent, "the failure is permanent"),
        (StopReason::AttemptsExhausted, "all allowed attempts have been made"),
        (StopReason::NotRepeatable, "the request must not be repeated"),
        (StopReason::EarlierHop, "an earlier hop may have processed the request (redirects_below(false) rules it out)"),
        (StopReason::BodyNotKept, "the request body was not kept"),
        (StopReason::BodyNotOpened, "the request body could not be opened again"),
        (StopReason::ScheduleEnded, "the schedule has ended"),
        (StopReason::ServerSaidStop, "the server asked not to be called again"),
        (StopReason::ServerDelayTooLong, "the server asked for a longer wait than is allowed"),
        (StopReason::ElapsedExhausted, "the next delay would pass the limit on elapsed time"),
        (StopReason::IntervalTooLong, "the shared interval would pass the limit on elapsed time"),
        (StopReason::DeadlineExceeded, "the deadline has passed, or would pass before another attempt"),
        (StopReason::BudgetExhausted, "the retry budget is exhausted"),
        (StopReason::NotReady, "the service was not ready for another attempt"),
        (StopReason::Forbidden, "retries are ruled out for this call"),
        (StopReason::Nested, "another retry layer answers for this call"),
        (StopReason::Refused, "a guard refused the attempt"),
        (StopReason::NoTimer, "there is no runtime to wait on"),
    ] {
        assert_eq!(reason.to_string(), text);
    }
}

#[test]
fn failures_without_and_with_a_code() {
    for (kind, text) in [
        (FailureKind::Connect, "connect"),
        (FailureKind::Network, "network"),
        (FailureKind::Timeout, "timeout"),
        (FailureKind::Throttled, "throttled"),
        (FailureKind::Server, "server"),
        (FailureKind::Other, "other"),
    ] {
        let failure = Failure::new(kind);
        assert_eq!((failure.kind(), failure.code()), (kind, None));
        assert_eq!(failure.to_string(), text);
        let failure = failure.with_code(503);
        assert_eq!((failure.kind(), failure.code()), (kind, Some(503)));
        assert_eq!(failure.to_string(), format!("{text} (503)"));
    }
}

#[test]
fn configuration_errors() {
    let error = ConfigError::new("cap", "99ms", "at least the base delay");
    assert_eq!(error.to_string(), "`cap` must be at least the base delay, but it is 99ms");
    assert_eq!((error.field(), error.value(), error.allowed()), ("cap", "99ms", "at least the base delay"));
    assert!(error.source().is_none());
}
