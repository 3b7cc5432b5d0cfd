//! The meaning of HTTP for a retry: statuses, server hints, transport errors, repeatability, idempotency keys.
//!
//! Requests, response heads and transport errors flow in; verdicts and server hints flow out. Nothing here
//! sleeps, retries or decides.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod hints;
mod idempotency;
mod repeatable;
mod status;
mod transport;

pub use hints::{Hinted, Hints};
pub use idempotency::{IDEMPOTENCY_KEY, new_idempotency_key};
pub use repeatable::{is_head_repeatable, is_repeatable};
pub use status::verdict_of_status;
pub use transport::{is_callers_own, reset_reason, undone, verdict_of_error};
