//! Tests of hedged calls through the public API, under a paused clock. The names contain the ids of the rules of gRPC's
//! proposal A6 that they test.

mod auto_traits;
mod bodies;
pub(crate) mod budget;
mod cancelling;
mod classifying;
mod composing;
mod confirming;
#[cfg(feature = "tonic")]
mod connection;
mod deadlines;
mod edges;
#[cfg(feature = "tonic")]
mod grpc;
mod local;
mod no_runtime;
mod observing;
mod quantile;
mod readiness;
mod releasing;
mod reports;
mod rules;
mod safety;
#[cfg(feature = "tonic")]
mod uploads;

use reattempt::hedge::HedgePolicy;
use reattempt::{Report, RetryBudget};

use crate::calls::support;
use support::{Answer, ms};

/// Returns a policy of up to three attempts, one every 100 ms.
fn policy() -> HedgePolicy {
    HedgePolicy::http().max_attempts(3).delay(ms(100)).budget(RetryBudget::percent(10))
}

/// Returns the number of attempts sent, and the attempt that won; `None` for a single attempt.
fn report(answer: &Answer) -> Option<(u32, u32)> {
    let report = Report::of(answer).filter(|report| report.retries() > 0)?;
    Some((report.retries() + 1, report.winner()?))
}
