//! Pacing: each call waits for its turn, one interval after the call before it.
//!
//! [`Responsive`](crate::schedule::Responsive), which any number of clients share, decides
//! how long the interval is and when a turn may be taken. The layer keeps the order of the calls that
//! wait, bounds how many they are, and reports how each call ended.
//!
//! | item | content |
//! |---|---|
//! | [`PaceLayer`], [`Pace`], [`ResponseFuture`] | the middleware |
//! | [`PaceRefused`], [`PaceRefusal`] | the error of a call that was turned away, and its reason |

mod future;
mod layer;
mod queue;
mod request;
mod send;
mod service;
mod settings;

pub use crate::call::pace_refused::{PaceRefusal, PaceRefused};
pub use future::ResponseFuture;
pub use layer::PaceLayer;
#[doc(hidden)]
pub use request::Paced;
pub use service::Pace;
