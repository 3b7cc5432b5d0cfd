//! What HTTP means to a retry.
//!
//! What flows in: requests, response heads and transport errors. What flows out: verdicts, server
//! hints, and bodies that can be sent again. Nothing here sleeps, retries or decides.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod drain;
mod hints;
mod idempotency;
mod repeatable;
mod replay;
mod saved_head;
mod status;
mod transport;

pub use drain::Drain;
pub use hints::{Hinted, Hints};
pub use idempotency::{IDEMPOTENCY_KEY, new_idempotency_key};
pub use repeatable::is_repeatable;
pub use replay::{ReplayBody, ReplayCharge, ReplayError, ReplayLimits, ReplayMemory, ReplayWatch};
pub use saved_head::SavedHead;
pub use status::verdict_of_status;
pub use transport::{reset_reason, undone, verdict_of_error};
