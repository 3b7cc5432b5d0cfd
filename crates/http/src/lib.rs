//! The meaning of HTTP for a retry: statuses, server hints, transport errors, repeatability, idempotency keys.
//!
//! A retry needs two facts from here. A [`Verdict`](reattempt_core::Verdict) states whether an attempt failed, and
//! whether another may succeed. A [`ServerHint`](reattempt_core::ServerHint) is the delay, or the stop, that the
//! server asks for.
//!
//! | outcome or request | function |
//! |---|---|
//! | a response status | [`verdict_of_status`] |
//! | the headers of a refused response | [`Hints::read`], then [`Hinted::classification`] |
//! | a client's error | [`verdict_of_error`]; [`is_callers_own`] shows whether this side caused it |
//! | a request that may be sent twice | [`is_repeatable`], [`new_idempotency_key`] |
//!
//! Nothing here sleeps or sends. The crate `reattempt` decides and retries. Users import these items from
//! `reattempt::classify`.

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
