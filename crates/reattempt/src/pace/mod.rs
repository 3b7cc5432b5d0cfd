//! Pacing: each call waits for its turn, one interval after the call before it.
//!
//! Use it if a server throttles its callers and all calls of a client should slow down together.
//! [`Responsive`](crate::schedule::Responsive), which any number of clients share, decides about the interval and the
//! turns. The layer orders the calls that wait, bounds their number, and records the outcome of each call.
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
mod sync;

pub use crate::call::pace_refused::{PaceRefusal, PaceRefused};
pub use future::ResponseFuture;
pub use layer::PaceLayer;
#[doc(hidden)]
pub use request::Paced;
pub use service::Pace;
