//! Schedules whose delays are known in advance: constant, linear, listed, or from any iterator.
//!
//! They draw no random numbers, so clients that fail at one moment retry at one moment. If there are many clients, add
//! jitter by [`ScheduleExt::jittered`](reattempt_core::ScheduleExt::jittered). Users import these types from
//! `reattempt::schedule`.
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
