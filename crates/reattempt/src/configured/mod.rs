//! Retries and hedging as a service config says: each call by its method's path.
//!
//! What flows in: a call, and the config that is in force at that moment. What flows out: the call,
//! retried by [`Retry`](crate::Retry) or hedged by [`Hedge`](crate::Hedge), or neither, by what the
//! config says of its method; nothing is decided here.

mod future;
mod layer;
mod method;
mod service;

pub use future::ConfiguredFuture;
pub use layer::ServiceConfigLayer;
pub(crate) use method::{OfMethod, kind};
pub use service::Configured;
