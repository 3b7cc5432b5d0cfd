//! Schedules with delays that are known in advance: constant, linear, listed, or from any iterator.
//!
//! | schedule | delay before retry n, from 0 |
//! |---|---|
//! | [`Constant`] | `base` |
//! | [`Linear`] | `min(cap, base + n · step)` |
//! | [`List`] | entry n; after the last one, no retry or that entry again |
//! | [`Iterated`] | the next item of an iterator that is created for each call |
//!
//! ```
//! use core::time::Duration;
//! use reattempt::schedule::{Jitter, Linear, ScheduleExt};
//! # mod reattempt {
//! #     pub mod schedule { pub use reattempt_core::*; pub use reattempt_schedule_fixed::*; }
//! # }
//!
//! let schedule = Linear::new(Duration::from_millis(250))
//!     .max_delay(Duration::from_secs(16))
//!     .jittered(Jitter::equal());
//! ```
//!
//! These schedules draw no random numbers, so clients that fail at the same time retry at the same time. If there are
//! many clients, add jitter with [`ScheduleExt::jittered`](reattempt_core::ScheduleExt::jittered).
//!
//! # When to use it alone
//!
//! Programs import these types from `reattempt::schedule`. Depend on this crate in a `no_std` driver of
//! `reattempt-core`, or as an example: it is the shortest schedule crate, and depends on the core alone.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod constant;
mod iterated;
mod linear;
mod list;

pub use constant::Constant;
pub use iterated::{Iterated, IteratedDelays};
pub use linear::Linear;
pub use list::List;
