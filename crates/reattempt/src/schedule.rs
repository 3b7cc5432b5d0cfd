//! Schedules: how long to wait before each retry.
//!
//! | schedule | delays |
//! |---|---|
//! | [`Exponential`] | growing by a factor up to a cap, with no, full, equal or symmetric jitter |
//! | [`Decorrelated`] | drawn between the base and three times the last one |
//! | [`TruncatedExponential`] | whole powers of two with random milliseconds, then an end |
//! | [`Constant`], [`Linear`], [`List`] | what their names say |
//! | [`Responsive`] | one interval for all calls, up with refusals and down with successes |
//! | [`Iterated`] | any factory of iterators of durations: other crates' schedules |
//! | [`Reconnecting`] | those of any schedule, in one run from call to call |
//! | [`SharedSchedule`] | any of them, the type erased |
//!
//! [`ScheduleExt`] takes, caps, floors, joins and jitters them, and gives each kind of failure its
//! own. A schedule of your own needs the traits [`Schedule`] and [`Delays`] and nothing else. It receives the
//! [`Failure`] before each retry, whose [`FailureKind`] it may act on, and a [`Random`] to draw jitter from.
//! [`CallRandom`] is the one that a call through a layer has.

pub use crate::call::random::CallRandom;
pub use reattempt_core::{
    Capped, Delays, Failure, FailureKind, Floor, ForFailures, ImmediateFirst, Jitter, Jittered,
    NextRetry, OnFailureDelays, Random, Schedule, ScheduleExt, SentAt, SharedSchedule, Take, Then,
    ThenDelays,
};
pub use reattempt_schedule_exponential::{
    Decorrelated, Exponential, ExponentialDelays, TruncatedExponential, TruncatedExponentialDelays,
};
pub use reattempt_schedule_fixed::{Constant, Iterated, IteratedDelays, Linear, List};
pub use reattempt_schedule_responsive::{Reconnecting, Responsive, ResponsiveMetrics};
