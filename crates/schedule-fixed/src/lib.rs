//! Schedules with delays that are known in advance: constant, linear, listed, or from any iterator.
//!
//! | schedule | delay before retry n, counting from 0 |
//! |---|---|
//! | [`Constant`] | `base` |
//! | [`Linear`] | `min(cap, base + n · step)` |
//! | [`List`] | entry n; after the last one, no retry or the last entry again |
//! | [`Iterated`] | the next item of an iterator created for each call |
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
//! Applications import these types from `reattempt::schedule`. Depend on this crate directly in a `no_std` driver of
//! `reattempt-core`. It is also a good example: it is the shortest schedule crate, and depends only on the core.
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
