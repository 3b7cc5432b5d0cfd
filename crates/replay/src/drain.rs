//! Draining of refused responses: the rest of the body is read, so that the HTTP/1 connection can be reused.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::Body;
use pin_project_lite::pin_project;

/// The maximum number of frames to read, regardless of their length.
const MAX_FRAMES: u32 = 512;

pin_project! {
    /// A future that reads a body to its end and discards the data.
    ///
    /// An HTTP/1 client reuses a connection only after reading the whole response.
    ///
    /// The output is `true` if the end was reached. It is `false` if the body has or announces more bytes than the
    /// limit, has more than 512 frames, or fails. The future has no time limit, so wrap it in a timeout. Drop it once
    /// it is ready: it owns the body, and with it the connection.
    ///
    /// ```
    /// # use bytes::Bytes;
    /// # use http_body_util::Full;
    /// # use reattempt_replay::Drain;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let error_page = Full::<Bytes>::from("try again later");
    /// assert!(Drain::new(error_page, 16 * 1024).await);
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the body. If the body has not ended, the client closes its HTTP/1 connection.
    pub struct Drain<B> {
        #[pin]
        body: B,
        bytes_left: u64,
        frames_left: u32,
    }
}

impl<B: Body> Drain<B> {
    /// The default limit, 16 KiB. Error pages are usually shorter, and reading more would cost more than a new
    /// connection.
    pub const DEFAULT_LIMIT: u64 = 16 * 1024;

    /// Creates a future that gives up if `body` has more than `limit` bytes.
    pub fn new(body: B, limit: u64) -> Self {
        Self { body, bytes_left: limit, frames_left: MAX_FRAMES }
    }
}

impl<B: Body> Future for Drain<B> {
    type Output = bool;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<bool> {
        let mut this = self.project();
        loop {
            if this.body.is_end_stream() {
                return Poll::Ready(true);
            }
            if this.body.size_hint().lower() > *this.bytes_left || *this.frames_left == 0 {
                return Poll::Ready(false);
            }
            let frame = match ready!(this.body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(_)) => return Poll::Ready(false),
                None => return Poll::Ready(true),
            };
            let length = frame.data_ref().map_or(0, Buf::remaining);
            let left = u64::try_from(length).ok().and_then(|length| this.bytes_left.checked_sub(length));
            let Some(left) = left else {
                return Poll::Ready(false);
            };
            *this.bytes_left = left;
            *this.frames_left -= 1;
        }
    }
}

impl<B> fmt::Debug for Drain<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain").field("bytes_left", &self.bytes_left).finish_non_exhaustive()
    }
}
