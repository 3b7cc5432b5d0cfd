//! The connection below an HTTP/2 server, into which a script can insert its own bytes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::reply::End;
use super::stream::Stream;

/// A connection into which bytes can be inserted. They are sent after all earlier writes.
#[derive(Debug)]
pub(super) struct Tap {
    io: Stream,
    valve: Valve,
}

/// The handle with which the script inserts bytes and ends the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Valve(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    end: End,
    /// The last stream that was accepted.
    accepted: u32,
    /// The last stream that a GOAWAY includes.
    last: Option<u32>,
}

impl Valve {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends raw bytes, which need not be frames.
    pub(super) fn send(&self, bytes: &[u8]) {
        self.state().bytes.extend_from_slice(bytes);
    }

    /// Records that a stream was accepted. Returns `false` if a GOAWAY has excluded it.
    pub(super) fn accepts(&self, stream: u32) -> bool {
        let mut state = self.state();
        state.accepted = state.accepted.max(stream);
        state.last.is_none_or(|last| stream <= last)
    }

    /// Sends a GOAWAY frame that includes every accepted stream.
    pub(super) fn go_away_above(&self, code: u32) {
        let accepted = self.state().accepted;
        self.go_away(accepted, code);
    }

    /// Sends a GOAWAY frame that excludes this stream.
    pub(super) fn go_away_below(&self, stream: u32, code: u32) {
        self.go_away(stream.saturating_sub(2), code);
    }

    /// Sends a GOAWAY frame. Its last stream never exceeds that of an earlier one.
    fn go_away(&self, last: u32, code: u32) {
        let mut state = self.state();
        let last = state.last.map_or(last, |earlier| earlier.min(last));
        state.last = Some(last);
        state.bytes.extend_from_slice(&[0, 0, 8, 7, 0, 0, 0, 0, 0]);
        state.bytes.extend_from_slice(&last.to_be_bytes());
        state.bytes.extend_from_slice(&code.to_be_bytes());
    }

    /// Ends the connection with [`End::Close`] or [`End::Reset`].
    pub(super) fn end_with(&self, end: End) {
        self.state().end = end;
    }
}

impl Tap {
    pub(super) fn new(io: Stream) -> (Self, Valve) {
        let valve = Valve::default();
        (Self { io, valve: valve.clone() }, valve)
    }
}

impl AsyncRead for Tap {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Tap {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        if self.valve.state().end != End::Open {
            return Poll::Ready(Ok(data.len()));
        }
        Pin::new(&mut self.io).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let mut state = this.valve.state();
        while !state.bytes.is_empty() {
            let written = ready!(Pin::new(&mut this.io).poll_write(cx, &state.bytes))?;
            state.bytes.drain(..written);
        }
        match state.end {
            End::Open => Pin::new(&mut this.io).poll_flush(cx),
            End::Reset => {
                ready!(Pin::new(&mut this.io).poll_flush(cx))?;
                this.io.reset_on_drop()?;
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
            _ => Pin::new(&mut this.io).poll_shutdown(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
