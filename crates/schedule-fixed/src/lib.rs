//! Delays that are known beforehand: constant, linear, listed, or from any iterator.
//!
//! These schedules draw no random numbers.
//! [`ScheduleExt::jittered`](reattempt_core::ScheduleExt::jittered) adds jitter, which is advisable wherever many
//! clients may fail at one moment.
//!
//! | schedule | delay before retry n, from 0 |
//! |---|---|
//! | [`Constant`] | `base` |
//! | [`Linear`] | `min(cap, base + n · step)` |
//! | [`List`] | the nth entry, and then none or the last one for ever |
//! | [`Iterated`] | what an iterator made for the call says |
//!
//! ```
//! use core::time::Duration;
//! use reattempt_core::{Jitter, ScheduleExt};
//! use reattempt_schedule_fixed::Linear;
//!
//! let schedule = Linear::new(Duration::from_millis(250))
//!     .max_delay(Duration::from_secs(16))
//!     .jittered(Jitter::equal());
//! # Ok::<_, reattempt_core::ConfigError>(())
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
