//! The connection below an HTTP/2 server, into which the script inserts its own bytes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::reply::End;

/// A connection into which bytes can be inserted. They are sent after everything that was written before.
#[derive(Debug)]
pub(super) struct Tap {
    io: TcpStream,
    valve: Valve,
}

/// The handle with which the script inserts bytes and ends the connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Valve(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    bytes: Vec<u8>,
    end: End,
}

impl Valve {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends these bytes, frames or not.
    pub(super) fn send(&self, bytes: &[u8]) {
        self.state().bytes.extend_from_slice(bytes);
    }

    /// Sends a GOAWAY frame.
    pub(super) fn go_away(&self, last_stream: u32, code: u32) {
        self.send(&[0, 0, 8, 7, 0, 0, 0, 0, 0]);
        self.send(&last_stream.to_be_bytes());
        self.send(&code.to_be_bytes());
    }

    /// Ends the connection with [`End::Close`] or [`End::Reset`].
    pub(super) fn end_with(&self, end: End) {
        self.state().end = end;
    }
}

impl Tap {
    pub(super) fn new(io: TcpStream) -> (Self, Valve) {
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
                this.io.set_zero_linger()?;
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
            _ => Pin::new(&mut this.io).poll_shutdown(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
