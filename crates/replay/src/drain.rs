//! Reads what is left of a refused response, so that its HTTP/1 connection can be used again.
//!
//! In flows a body nobody wants; out flows whether its end was reached. A little is read and thrown
//! away; a body that would take more is given up, and dropping it closes the connection.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::Body;
use pin_project_lite::pin_project;

/// The most frames that are read, whatever they hold.
const MAX_FRAMES: u32 = 512;

pin_project! {
    /// A future that reads a body and throws it away.
    ///
    /// It is `true` when the end was reached, and `false` when it gave up: the body holds, or
    /// announces, more than the limit, comes in more than 512 frames, or fails. It does not bound
    /// the time; put a timeout around it. Whatever it says, drop it then: it holds the body.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops the body, which closes an HTTP/1 connection that still had some to send.
    pub struct Drain<B> {
        #[pin]
        body: B,
        bytes_left: u64,
        frames_left: u32,
    }
}

impl<B: Body> Drain<B> {
    /// The usual limit, 16 KiB: more than an error page has, and less than a new connection costs.
    pub const DEFAULT_LIMIT: u64 = 16 * 1024;

    /// Throws away `body` if it ends within `limit` bytes.
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
            let left =
                u64::try_from(length).ok().and_then(|length| this.bytes_left.checked_sub(length));
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
