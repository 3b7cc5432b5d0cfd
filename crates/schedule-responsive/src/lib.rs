//! Responsive backoff: one interval for all of a client's calls. Refused calls lengthen it and successes shorten it,
//! until the call rate matches the service's capacity.
//!
//! The interval is the delay of a [`Schedule`](reattempt_core::Schedule), or the time between calls in a layer that
//! delays each call.
//!
//! ```
//! use core::time::Duration;
//! use reattempt::schedule::Responsive;
//! # mod reattempt { pub use reattempt_schedule_responsive as schedule; }
//!
//! let pace = Responsive::new()
//!     .initial(Duration::from_millis(100))
//!     .max(Duration::from_secs(60));
//! assert_eq!(pace.interval(), Duration::ZERO, "no call is delayed before the first refusal");
//! ```
//!
//! [`Responsive`] has no clock, timer or lock. Each change is a single compare-and-swap, and no thread waits for
//! another. `Reconnecting` is a schedule whose delays continue from one call to the next, for streams that are reopened
//! when they break. It needs the feature `std` (on by default), because a lock guards its state.
//!
//! # When to use it alone
//!
//! Applications import both types from `reattempt::schedule`. Depend on this crate directly to pace something other
//! than a tower service, such as a worker or a device. Without the feature `std`, the crate is `no_std` with `alloc`,
//! for targets with 64-bit atomics.
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
pub use pace::ReservedTurn;
#[cfg(feature = "std")]
pub use reconnecting::Reconnecting;
pub use responsive::Responsive;
