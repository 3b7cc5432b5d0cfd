//! A breaker's fields in a snapshot.

use std::time::Duration;

use reattempt_core::snapshot::Part;

use super::changes::BreakerState;
use super::counts::Counts;
use super::rules::{Rules, Trip};
use super::settings::ratio_of;

/// Adds the rule that opens the breaker, and its times.
pub(super) fn settings(rules: &Rules, part: Part) -> Part {
    let set = |time: Duration| Some(time).filter(|time| !time.is_zero());
    let part = match &rules.trip {
        Trip::Counts(_) => part,
        Trip::Rate(rate) => part
            .field("failure_ratio", ratio_of(rate.ratio))
            .field("min_calls", rate.calls)
            .field("consecutive_failures", rate.consecutive)
            .field("min_failing_time", rate.time),
    };
    part.field_if("last_calls", Some(rules.last_calls).filter(|calls| *calls > 0))
        .field_if("interval", set(rules.interval))
        .field_if("first_open_time", set(rules.first_open_time))
        .field_if("open_time", set(rules.open_time))
        .field("probes", rules.probes)
}

/// Adds the state, the open time that is left, and the window's counts.
pub(super) fn state((state, left, counts): (BreakerState, Option<Duration>, Counts), part: Part) -> Part {
    part.field("state", state.to_string())
        .field_if("open_time_left", left)
        .field("requests", counts.requests)
        .field("failures", counts.total_failures)
        .field("consecutive_failures", counts.consecutive_failures)
}
