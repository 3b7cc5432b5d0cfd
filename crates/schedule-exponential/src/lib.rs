//! Exponential backoff: delays that grow by a factor, with every common form of jitter.
//!
//! A base delay suffices; the factor and the cap have defaults.
//! [`ScheduleExt::jittered`](reattempt_core::ScheduleExt::jittered) adds the same kinds of jitter to any other
//! schedule.
//!
//! | schedule | delay before retry n, from 0 | mean |
//! |---|---|---|
//! | [`Exponential::no_jitter`] | `t = min(cap, base · factorⁿ)` | `t` |
//! | [`Exponential::full_jitter`] | anything from 0 to `t` | `t / 2` |
//! | [`Exponential::equal_jitter`] | anything from `t / 2` to `t` | `¾ t` |
//! | [`Exponential::symmetric`] | anything from `t · (1 − r)` to `t · (1 + r)` | `t` |
//! | [`Exponential::decorrelated`] | anything from `base` to `min(cap, 3 · previous)` | |
//! | [`TruncatedExponential`] | `2ⁿ` s and up to 1 s more, five times | `2ⁿ + ½` s |
//!
//! The cap is applied after the growth and before the jitter, so clients stay scattered however
//! long a failure lasts. A jittered delay is never the base of the next one, except in the
//! decorrelated form, which is defined so.
//!
//! ```
//! use core::time::Duration;
//! use reattempt_schedule_exponential::Exponential;
//!
//! let schedule = Exponential::full_jitter(Duration::from_millis(100)).max_delay(Duration::from_secs(5));
//! assert_eq!(schedule, Exponential::default());
//! # Ok::<_, reattempt_core::ConfigError>(())
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod decorrelated;
mod exponential;
mod growth;
mod truncated;

pub use decorrelated::Decorrelated;
pub use exponential::{Exponential, ExponentialDelays};
pub use truncated::{TruncatedExponential, TruncatedExponentialDelays};
