//! Schedules: the delays before retries.
//!
//! | schedule | delays |
//! |---|---|
//! | [`Exponential`] | growing by a factor up to a cap, with no, full, equal or symmetric jitter |
//! | [`Decorrelated`] | random, from the base to three times the previous delay |
//! | [`TruncatedExponential`] | doubling, each with a random part, for a fixed number of retries |
//! | [`Constant`], [`Linear`], [`List`] | constant, growing linearly, or from a list of durations |
//! | [`Responsive`] | one interval for all calls, longer after refusals and shorter after successes |
//! | [`Iterated`] | from any iterator, created for each call; adapts schedules of other crates |
//! | [`Reconnecting`] | from any schedule, continued from one call to the next until a reset |
//! | [`SharedSchedule`] | from any schedule, type-erased |
//!
//! [`ScheduleExt`] provides combinators: limits, caps, floors, jitter, sequences, and a schedule for each kind of
//! failure. A custom schedule implements two traits: [`Schedule`] for its settings, and [`Delays`] for the state of one
//! call. Before each retry, [`Delays`] receives the [`Failure`] with its [`FailureKind`], and a [`Random`] for jitter.
//! Layers pass a [`CallRandom`].
//!
//! ```
//! use std::time::Duration;
//!
//! use reattempt::RetryPolicy;
//! use reattempt::schedule::{Delays, NextRetry, Random, Schedule};
//!
//! /// 100 ms, 400 ms, 900 ms, …
//! #[derive(Clone)]
//! struct Squares;
//!
//! struct SquareDelays(u32);
//!
//! impl Schedule for Squares {
//!     type Delays = SquareDelays;
//!     fn delays(&self) -> SquareDelays { SquareDelays(0) }
//! }
//!
//! impl Delays for SquareDelays {
//!     fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
//!         self.0 = self.0.saturating_add(1);
//!         Some(Duration::from_millis(100).saturating_mul(self.0.saturating_mul(self.0)))
//!     }
//! }
//!
//! let policy = RetryPolicy::http().backoff(Squares);
//! ```

pub use crate::call::random::CallRandom;
pub use reattempt_core::{
    Capped, Delays, Failure, FailureKind, Floor, ForFailures, ImmediateFirst, Jitter, Jittered, NextRetry,
    OnFailureDelays, Random, Schedule, ScheduleExt, SentAt, SharedSchedule, Take, Then, ThenDelays,
};
pub use reattempt_schedule_exponential::{
    Decorrelated, Exponential, ExponentialDelays, TruncatedExponential, TruncatedExponentialDelays,
};
pub use reattempt_schedule_fixed::{Constant, Iterated, IteratedDelays, Linear, List};
pub use reattempt_schedule_responsive::{Reconnecting, Responsive, ResponsiveMetrics};
