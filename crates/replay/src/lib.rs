//! A request that can be sent again: its body, its head, and the rest of a refused response.
//!
//! A request is gone once it was sent. A client that may send it again keeps a [`SavedHead`] and a reader of
//! its [`ReplayBody`], and reads what is left of a refused response with [`Drain`], so that the connection
//! can carry the next attempt. Nothing here decides whether to send again; see `reattempt` for that.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod complete;
mod drain;
mod error;
mod frames;
mod limits;
mod memory;
mod prefetched;
mod progress;
mod saved_head;
mod shared;
mod wakers;
mod watch;

pub use body::ReplayBody;
pub use drain::Drain;
pub use error::ReplayError;
pub use limits::ReplayLimits;
pub use memory::{ReplayCharge, ReplayMemory};
pub use saved_head::SavedHead;
pub use watch::ReplayWatch;
