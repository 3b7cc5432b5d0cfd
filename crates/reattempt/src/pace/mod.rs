//! Pacing: each call waits for its turn, one interval after the call before it.
//!
//! [`Responsive`](reattempt_schedule_responsive::Responsive), which any number of clients share, decides
//! how long the interval is and when a turn may be taken. The layer keeps the order of the calls that
//! wait, bounds how many they are, and reports how each call ended.

mod future;
mod layer;
mod queue;
mod request;
mod send;
mod service;
mod settings;

pub use future::PaceFuture;
pub use layer::PaceLayer;
pub use request::Paced;
pub use service::Pace;
