//! Responsive backoff: one interval paces all calls of a client. Refusals lengthen it, runs of
//! successes shorten it, so that it settles where the service just keeps up.
//!
//! What flows in: when each call was sent and how it ended. What flows out: the interval, as the
//! delays of a [`Schedule`](reattempt_core::Schedule) or for a layer that waits before each call,
//! and counts of what happened. There is no clock and no timer here, and no lock: everything is
//! changed by compare-and-swap, and nobody ever waits for another.
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
mod turns;

pub use metrics::ResponsiveMetrics;
#[cfg(feature = "std")]
pub use reconnecting::Reconnecting;
pub use responsive::Responsive;
