//! Responsive backoff: one interval paces all calls of a client. Refusals lengthen it, runs of
//! successes shorten it, so that it settles where the service just keeps up.
//!
//! The interval is the delay of a [`Schedule`](reattempt_core::Schedule), or the distance between calls in a layer
//! that waits before each call. There is no clock, timer or lock here: every change is a
//! compare-and-swap, and no thread waits for another.
//!
//! ```
//! use core::time::Duration;
//! use reattempt_schedule_responsive::Responsive;
//!
//! let pace = Responsive::new()
//!     .initial(Duration::from_millis(100))?
//!     .max(Duration::from_secs(60))?;
//! assert_eq!(pace.interval(), Duration::ZERO, "nothing waits before a first refusal");
//! # Ok::<_, reattempt_core::ConfigError>(())
//! ```
//!
//! `Reconnecting` is a schedule whose delays go on from call to call, for streams that break and are opened
//! again. It needs the feature `std` (on by default), because a lock guards its state.
//!
//! Without `std` the crate is `no_std` + `alloc`, for targets that have atomics of 64 bits.
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod metrics;
mod pace;
#[cfg(feature = "std")]
mod reconnecting;
mod responsive;
mod rule;
mod sync;

pub use metrics::ResponsiveMetrics;
#[cfg(feature = "std")]
pub use reconnecting::Reconnecting;
pub use responsive::Responsive;
