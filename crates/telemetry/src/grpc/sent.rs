//! The message bytes that an attempt has sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http_body::Frame;
use reattempt_engine::body::Watch;

use super::messages::Messages;

/// The shared count of message bytes sent by an attempt's request body.
pub(super) struct Sent {
    messages: Messages,
    sent: Arc<AtomicU64>,
}

impl Sent {
    pub(super) fn new(sent: Arc<AtomicU64>) -> Self {
        Self { messages: Messages::default(), sent }
    }
}

impl Watch<tonic::body::Body> for Sent {
    type Error = tonic::Status;

    fn error(error: tonic::Status) -> tonic::Status {
        error
    }

    fn read_frame(&mut self, frame: Option<Result<&Frame<Bytes>, &tonic::Status>>, _: impl FnOnce() -> bool) {
        if let Some(Ok(frame)) = frame
            && let Some(data) = frame.data_ref()
        {
            self.messages.read(data);
            self.sent.store(self.messages.bytes, Ordering::Relaxed);
        }
    }
}
