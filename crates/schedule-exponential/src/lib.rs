//! Exponential backoff: delays that grow by a factor, with every common form of jitter.
//!
//! Only the base delay is required. By default, the factor is 2 and the cap is 5 s.
//!
//! | schedule | delay before retry n, counting from 0 | mean |
//! |---|---|---|
//! | [`Exponential::no_jitter`] | `t = min(cap, base · factorⁿ)` | `t` |
//! | [`Exponential::full_jitter`], the default | random from 0 to `t` | `t / 2` |
//! | [`Exponential::equal_jitter`] | random from `t / 2` to `t` | `¾ t` |
//! | [`Exponential::symmetric`] | random from `t · (1 − r)` to `t · (1 + r)` | `t` |
//! | [`Exponential::decorrelated`] | random from `base` to `min(cap, 3 · previous)` | |
//! | [`TruncatedExponential`] | `2ⁿ` s plus up to 1 s, five times | `2ⁿ + ½` s |
//!
//! ```
//! use core::time::Duration;
//! use reattempt::schedule::Exponential;
//! # mod reattempt { pub use reattempt_schedule_exponential as schedule; }
//!
//! let schedule = Exponential::full_jitter(Duration::from_millis(100)).max_delay(Duration::from_secs(5));
//! assert_eq!(schedule, Exponential::default());
//! ```
//!
//! The cap is applied before the jitter, so clients stay spread out during a long outage. Only the decorrelated form
//! computes each delay from the previous jittered one.
//!
//! # When to use it alone
//!
//! Applications import these types from `reattempt::schedule`. Depend on this crate directly in a `no_std` driver of
//! `reattempt-core`. [`ScheduleExt::jittered`](reattempt_core::ScheduleExt::jittered) adds jitter to any other
//! schedule.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod decorrelated;
mod exponential;
mod growth;
mod truncated;

pub use decorrelated::Decorrelated;
pub use exponential::{Exponential, ExponentialDelays};
pub use truncated::{TruncatedExponential, TruncatedExponentialDelays};
