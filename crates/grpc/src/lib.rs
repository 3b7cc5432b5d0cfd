//! What gRPC means to a retry.
//!
//! What flows in: the head of a response. What flows out: its status [`Code`], the verdict on it and
//! the server's pushback. Nothing here sleeps, retries or decides. Peer data never panics.

#![forbid(unsafe_code)]

mod code;
mod head;
mod timeout;

pub use code::{Code, verdict_of_code};
pub use head::{code_of_head, pushback, verdict_of_head};
pub use timeout::parse_grpc_timeout;
