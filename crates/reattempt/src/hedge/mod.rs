//! Hedging: a call that takes long is sent again while the first attempt still runs, and the first
//! response that is not worth another attempt is the call's.
//!
//! **It multiplies load.** Each hedge is a whole request more for a server that may be slow because
//! of its load; a budget stands in front of every one, and the running quantile as the delay bounds
//! how many there are. **It carries requests out more than once, at the same time**: so over HTTP only
//! safe methods are hedged unless the caller says otherwise, and over gRPC whoever puts the layer in
//! says so of every method that passes through it.
//!
//! What flows in: a call. What flows out: the attempts, one after the other while none has answered,
//! and the outcome of one of them, untouched. [`HedgeCall`](reattempt_core::HedgeCall) decides what follows
//! an event; the rest carries it out.

mod call;
mod extended;
mod future;
mod hedgeable;
mod layer;
mod policy;
mod report;
mod running;
mod send;
mod service;
mod stopwatch;

pub use extended::Extended;
pub use future::HedgeFuture;
pub use hedgeable::Hedgeable;
pub use layer::HedgeLayer;
pub use policy::HedgePolicy;
pub use report::HedgeReport;
pub use service::Hedge;
pub(crate) use service::{Shared as HedgeShared, begin};
