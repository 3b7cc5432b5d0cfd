//! The connection below the HTTP/2 server, into which a test can insert its own frames.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use h2::Reason;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection. Inserted frames are sent after everything that was written before.
pub(crate) struct Tap<T> {
    io: T,
    valve: Valve,
}

/// The handle by which the test inserts frames.
#[derive(Debug, Clone, Default)]
pub(crate) struct Valve(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    frames: Vec<u8>,
    cut: bool,
}

impl Valve {
    /// Sends a GOAWAY frame.
    pub(crate) fn go_away(&self, last_stream: u32, reason: Reason) {
        let mut frame = vec![0, 0, 8, 7, 0, 0, 0, 0, 0];
        frame.extend(last_stream.to_be_bytes());
        frame.extend(u32::from(reason).to_be_bytes());
        self.0.lock().unwrap().frames.extend(frame);
    }

    /// Closes the sending side.
    pub(crate) fn cut(&self) {
        self.0.lock().unwrap().cut = true;
    }

    fn is_cut(&self) -> bool {
        self.0.lock().unwrap().cut
    }
}

impl<T> Tap<T> {
    pub(crate) fn new(io: T) -> (Self, Valve) {
        let valve = Valve::default();
        (Self { io, valve: valve.clone() }, valve)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Tap<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Tap<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        if self.valve.is_cut() {
            return Poll::Ready(Ok(buf.len()));
        }
        Pin::new(&mut self.io).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let mut state = this.valve.0.lock().unwrap();
        while !state.frames.is_empty() {
            let written = ready!(Pin::new(&mut this.io).poll_write(cx, &state.frames))?;
            state.frames.drain(..written);
        }
        ready!(Pin::new(&mut this.io).poll_flush(cx))?;
        // The client sees the end of the stream after all that went before, and no reset that could
        // overtake it.
        if state.cut { Pin::new(&mut this.io).poll_shutdown(cx) } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
