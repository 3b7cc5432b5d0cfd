//! Tests of the kinds of failures: their schedules, and the errors that are known as transient.

use std::io::ErrorKind;
use std::time::Duration;

use reattempt::operation::{is_transient_io_error, is_transient_sqlstate};
use reattempt::{RetryPolicy, retry};
use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule, StopReason, Verdict};
use tokio::time::Instant;

use super::{SECOND, script};

/// A schedule that waits longer for some kinds of failure than for others, and not at all for some.
#[derive(Clone)]
struct ByKind;

impl Schedule for ByKind {
    type Delays = Self;
    fn delays(&self) -> Self {
        Self
    }
}

impl Delays for ByKind {
    fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        match retry.failure.kind() {
            FailureKind::Network => Some(SECOND),
            FailureKind::Throttled => Some(60 * SECOND),
            _ => None,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn schedule_learns_kind_of_each_failure() {
    let started = Instant::now();
    let policy = RetryPolicy::operations().backoff(ByKind).max_attempts(9).max_elapsed(None);
    let operation = script([Err("network"), Err("throttled"), Err("odd"), Ok(1)]);
    let error = retry(policy, operation)
        .classify(|error| {
            Verdict::Transient(Failure::new(match *error {
                "network" => FailureKind::Network,
                "throttled" => FailureKind::Throttled,
                _ => FailureKind::Other,
            }))
        })
        .await
        .unwrap_err();
    assert_eq!((*error.error(), error.stop_reason()), ("odd", StopReason::ScheduleEnded));
    assert_eq!(started.elapsed(), 61 * SECOND);
}

#[test]
fn transient_sqlstates_are_recognised() {
    for state in ["08006", "08001", "40001", "40P01", "57P01", "57P03"] {
        assert!(is_transient_sqlstate(state), "{state}");
    }
    for state in ["42601", "28P01", "57014", "57P04", "40002", "08P01", "", "4", "40", "400011", "é8006"] {
        assert!(!is_transient_sqlstate(state), "{state}");
    }
}

#[test]
fn transient_io_errors_are_recognised() {
    for kind in [ErrorKind::ConnectionRefused, ErrorKind::TimedOut, ErrorKind::UnexpectedEof] {
        assert!(is_transient_io_error(&kind.into()), "{kind}");
    }
    for kind in [ErrorKind::NotFound, ErrorKind::PermissionDenied, ErrorKind::InvalidData] {
        assert!(!is_transient_io_error(&kind.into()), "{kind}");
    }
}
