//! A stream of a server that may send only so much. The driver reads a reply of any length, and takes ever longer to
//! search a long one for its end.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The bytes that a server may send after a write: many more than the replies to all questions in flight have.
pub(crate) const MOST_BYTES: usize = 1 << 20;

/// A stream that ends with an error if the peer has sent more than [`MOST_BYTES`] since the last write.
pub(crate) struct Bounded<S> {
    stream: S,
    left: usize,
}

impl<S> Bounded<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, left: MOST_BYTES }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().len() - before;
        let left = self.left.checked_sub(read).ok_or(io::ErrorKind::InvalidData)?;
        self.left = left;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.left = MOST_BYTES;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
