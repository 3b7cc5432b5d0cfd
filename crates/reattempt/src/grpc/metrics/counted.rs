//! The body of an attempt's request, whose messages are counted as they are sent.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::messages::Messages;

/// A request body that counts the messages sent.
pub(super) struct Counted {
    inner: tonic::body::Body,
    messages: Messages,
    sent: Arc<AtomicU64>,
}

impl Counted {
    pub(super) fn new(inner: tonic::body::Body, sent: Arc<AtomicU64>) -> Self {
        Self { inner, messages: Messages::default(), sent }
    }
}

impl Body for Counted {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, tonic::Status>>> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.messages.read(data);
            self.sent.store(self.messages.bytes, Ordering::Relaxed);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
