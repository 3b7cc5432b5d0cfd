//! The contracts of reattempt, and the engine that decides about retries.
//!
//! The crate is `no_std` with `alloc` and has no dependencies. A crate that adds a schedule, a budget or a guard
//! needs only this one:
//!
//! | to add | implement |
//! |---|---|
//! | delays | [`Schedule`] and [`Delays`] |
//! | a limit on retries | [`Budget`] |
//! | admission control for every attempt | [`guard::Guard`] |
//! | a verdict on some outcomes | [`Classifier`] |
//!
//! A [`Call`] is the state of one call. After each failed attempt it makes a [`Decision`]. The decision depends on the
//! [`Classification`] of the outcome, the [`Limits`] of the call, the schedule's delay and the budget's permit. A
//! [`HedgeCall`] does so for a call whose attempts run side by side.
//!
//! The *driver* of a call sends its attempts and waits: a tower layer, a plain future or a simulator. It supplies
//! the time and the random numbers, because there is no clock, socket, runtime or global generator here.
//!
//! ```
//! use core::time::Duration;
//! use reattempt_core::{Delays, NextRetry, Random, Schedule};
//!
//! /// Waits a whole number of seconds: 1, 2, 3, …
//! struct Seconds;
//!
//! impl Schedule for Seconds {
//!     type Delays = Self;
//!     fn delays(&self) -> Self { Seconds }
//! }
//!
//! impl Delays for Seconds {
//!     fn next_delay(&mut self, retry: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
//!         Some(Duration::from_secs(u64::from(retry.number) + 1))
//!     }
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod budget;
mod call;
mod classification;
mod combinators;
mod config_error;
mod decide;
mod failure;
mod for_failures;
pub mod guard;
mod hedge;
mod jitter;
mod limits;
mod random;
mod rounded;
mod schedule;
mod warning;

pub use budget::{Budget, PaidRetry, Permit, PermitIssuer, SpendOnly, Unlimited};
pub use call::{
    Account, Call, CallEnd, CallSchedule, Decision, FailedAttempt, Resent, Terms, Undone,
};
pub use classification::{Classification, Classifier, ServerHint, Verdict};
pub use combinators::{
    Capped, Floor, ImmediateFirst, Jittered, ScheduleExt, Take, Then, ThenDelays,
};
pub use config_error::ConfigError;
pub use decide::StopReason;
pub use failure::{Failure, FailureKind};
pub use for_failures::{ForFailures, OnFailureDelays};
pub use hedge::{HedgeCall, HedgeDecision, HedgeEvent, HedgePermits, HedgeTerms};
pub use jitter::Jitter;
pub use limits::Limits;
pub use random::Random;
#[doc(hidden)]
pub use rounded::Rounded;
pub use schedule::{Delays, NextRetry, Schedule, SentAt, SharedSchedule};
pub use warning::{Recommended, Warning};
