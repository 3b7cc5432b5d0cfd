//! Response bodies that are read as part of their attempt, so that a body that breaks or contains an error is retried.
//!
//! [`PeekBodyLayer`](crate::PeekBodyLayer) describes the layer and its bounds.

pub use reattempt_peek_body::{PeekBody, PeekableRequest, PeekableResponse, PeekedBody, ResponseFuture};
