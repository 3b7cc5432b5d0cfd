//! Pacing: each call waits first, as long as the calls before it have shown that the service needs.
//!
//! What flows in: a call. What flows out: the same call, sent when the interval has passed, and its
//! outcome, untouched. What the outcome does to the interval is said by
//! [`Responsive`](reattempt_schedule_responsive::Responsive), which any number of clients share; the
//! layer waits, and tells.

mod future;
mod layer;
mod service;
mod settings;

pub use future::PaceFuture;
pub use layer::PaceLayer;
pub use service::Pace;
