//! Several uploads in one body, one after another.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use super::checked::hint_of;
use super::{UploadBody, UploadError};

/// Opened uploads, read one after another.
pub(super) struct Joined {
    parts: Vec<UploadBody>,
    length: Option<u64>,
    at: usize,
}

impl Joined {
    /// Returns the length of all parts together, or `None` if the length of one is unknown.
    pub(super) fn length(parts: &[UploadBody]) -> Option<u64> {
        parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(part.length()?))
    }

    /// Opens all parts, so that none fails while the body is sent.
    pub(super) async fn open(parts: impl Iterator<Item = UploadBody>) -> Result<Self, UploadError> {
        let mut opened = Vec::new();
        for mut part in parts {
            if !part.is_end_stream() {
                poll_fn(|cx| part.poll_open(cx)).await?;
            }
            opened.push(part);
        }
        Ok(Self { length: Self::length(&opened), parts: opened, at: 0 })
    }
}

impl Body for Joined {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        while let Self { parts, at, .. } = &mut *self
            && let Some(part) = parts.get_mut(*at)
        {
            if let Some(frame) = ready!(part.poll_next(cx)) {
                return Poll::Ready(Some(frame));
            }
            *at += 1;
        }
        Poll::Ready(None)
    }

    /// The length of the unread body, which is checked when it is opened.
    fn size_hint(&self) -> SizeHint {
        hint_of(self.length)
    }
}
