//! HTTP for retries: statuses, server hints, transport errors, repeatability, idempotency keys.
//!
//! This crate supplies two inputs to a retry decision. A [`Verdict`](reattempt_core::Verdict) states whether an attempt
//! failed, and whether another may succeed. A [`ServerHint`](reattempt_core::ServerHint) is the server's request for a
//! delay, or for no retry.
//!
//! | input | function |
//! |---|---|
//! | a response status | [`verdict_of_status`] |
//! | the headers of a refused response | [`Hints::read`], then [`Hinted::classification`] |
//! | both at once, with the default hints | [`classification_of_response`] |
//! | an error from the client | [`verdict_of_error`]; [`fault_of_error`] shows if it is not the server's fault |
//! | the body of a response | [`xml_error_code`], `json_any` (feature `json`) |
//! | a request, to find out if it may be sent twice | [`is_repeatable`], [`new_idempotency_key`] |
//!
//! ```
//! use http::{HeaderMap, Method, StatusCode};
//! use reattempt_core::Verdict;
//! use reattempt_http::{is_repeatable, verdict_of_status};
//!
//! // A 503 may be sent after the work was done. So only a repeatable request is sent again.
//! assert!(matches!(verdict_of_status(StatusCode::SERVICE_UNAVAILABLE), Verdict::Transient(_)));
//! assert!(is_repeatable(&Method::PUT, &HeaderMap::new()));
//! assert!(!is_repeatable(&Method::POST, &HeaderMap::new()));
//!
//! // A 429 proves that nothing was processed. Every request may be sent again.
//! assert!(matches!(verdict_of_status(StatusCode::TOO_MANY_REQUESTS), Verdict::NotProcessed(_)));
//! ```
//!
//! # When to use it alone
//!
//! Use it to classify outcomes in your own retry loop, proxy or monitor. Nothing in this crate sleeps or sends
//! requests. The features `hyper`, `reqwest`, `tonic` and `ureq` add support for these clients' errors. The crate
//! `reattempt` makes the retry decisions, and re-exports these items in `reattempt::classify`.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body_text;
mod hints;
mod idempotency;
mod repeatable;
mod response;
mod status;
mod transport;

#[cfg(feature = "json")]
#[cfg_attr(docsrs, doc(cfg(feature = "json")))]
pub use body_text::json_any;
pub use body_text::xml_error_code;
pub use hints::{Hinted, Hints};
pub use idempotency::{IDEMPOTENCY_KEY, new_idempotency_key};
pub use repeatable::{is_head_repeatable, is_repeatable};
pub use response::classification_of_response;
pub use status::verdict_of_status;
pub use transport::{fault_of_error, is_of_http2, reset_reason, undone, verdict_of_error, view_error};
