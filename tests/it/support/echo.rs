//! The echo service, as it is generated: one method of each kind.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::all,
    clippy::allow_attributes_without_reason,
    reason = "generated code"
)]

/// The message of all its methods.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Text {
    #[prost(string, tag = "1")]
    pub(crate) text: String,
}

impl Text {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into() }
    }
}

include!(concat!(env!("OUT_DIR"), "/reattempt.testing.Echo.rs"));
