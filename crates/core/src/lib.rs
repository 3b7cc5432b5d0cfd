//! The core traits of reattempt, and the engine that makes retry decisions.
//!
//! The crate is `no_std` with `alloc` and has no dependencies. It has no clock, socket, runtime or global random number
//! generator. A *driver*, such as a tower layer, a plain future or a simulator, sends the attempts and waits. It also
//! supplies the time and the random numbers. The feature `std` only protects destructors that run a user's code: a
//! panic there does not abort a thread that already unwinds.
//!
//! # When to use it alone
//!
//! Applications depend on the crate `reattempt`. Depend on this one to publish a component that plugs into it:
//!
//! | component | implement |
//! |---|---|
//! | delays | [`Schedule`] and [`Delays`] |
//! | a limit on retries | [`Budget`] |
//! | admission control for every attempt | [`guard::Guard`] |
//! | classification of some outcomes | [`Classifier`] |
//! | the state of a part, for a page of what is in force | [`snapshot::Inspect`] |
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
//!
//! Also depend on it to write a driver. A [`Call`] holds the state of one call. After each failed attempt it makes a
//! [`Decision`] from the outcome's [`Classification`], the call's [`Limits`], the schedule's delay and the budget's
//! permit. A [`HedgeCall`] does the same for a call whose attempts run in parallel.
#![no_std]
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(any(test, feature = "std"))]
extern crate std;

mod budget;
mod call;
mod classification;
mod combinators;
mod combined;
mod config_error;
mod decide;
pub mod event;
mod evidence;
mod failure;
mod for_failures;
pub mod guard;
mod hedge;
mod jitter;
mod limits;
mod random;
mod rounded;
mod schedule;
pub mod snapshot;
mod undone;
#[doc(hidden)]
pub mod user_code;
mod warning;

pub use budget::{Budget, PaidRetry, Permit, PermitIssuer, SpendOnly, Unlimited};
pub use call::{Account, Call, CallEnd, CallSchedule, Decision, MOST_MOVES};
pub use classification::{Classification, Classifier, ServerHint, Verdict};
pub use combinators::{Capped, Floor, ImmediateFirst, Jittered, ScheduleExt, Take, Then, ThenDelays};
#[doc(hidden)]
pub use combined::{Combined, Contradiction};
pub use config_error::ConfigError;
pub use decide::{FailedAttempt, StopReason, Terms};
pub use evidence::{Evidence, Fault, Proof, Signs, Work};
pub use failure::{Failure, FailureKind};
pub use for_failures::{ForFailures, OnFailureDelays};
pub use hedge::{HedgeCall, HedgeDecision, HedgeEvent, HedgePermits, HedgeTerms};
pub use jitter::Jitter;
pub use limits::Limits;
pub use random::Random;
#[doc(hidden)]
pub use rounded::Rounded;
pub use schedule::{Delays, NextRetry, Schedule, SentAt, SharedSchedule};
pub use undone::{Resent, Undone};
pub use warning::{Recommended, Warning};
