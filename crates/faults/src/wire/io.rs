//! A connection with a fault, around any reader and writer.

use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::{Break, Direction, WireFault};
use crate::faults::Faults;
use crate::ledger::OpenConnection;

impl Faults<WireFault> {
    /// Wraps an existing connection. The connection is the script's next arrival.
    ///
    /// # Errors
    ///
    /// Returns `ConnectionRefused` for [`WireFault::Refuse`]. [`WireFault::TimeOut`] is not an error here: it stalls
    /// the connection in both directions.
    pub fn wrap<T>(&self, io: T) -> io::Result<FaultyIo<T>> {
        let (connection, open) = self.shared.ledger.connect();
        let (fault, _) = self.shared.take(None, connection, |_| true);
        match fault {
            WireFault::Refuse => Err(ErrorKind::ConnectionRefused.into()),
            fault => Ok(FaultyIo::new(io, fault, open)),
        }
    }
}

/// A connection with a fault. It implements `AsyncRead` and `AsyncWrite`.
#[derive(Debug)]
pub struct FaultyIo<T> {
    io: T,
    read: Way,
    write: Way,
    is_reset: bool,
    _open: OpenConnection,
}

impl<T> FaultyIo<T> {
    pub(super) fn new(io: T, fault: WireFault, open: OpenConnection) -> Self {
        let (mut read, mut write) = (Way::default(), Way::default());
        match fault {
            WireFault::Break { direction: Direction::Read, after, how } => read.breaks(after, how),
            WireFault::Break { direction: Direction::Write, after, how } => {
                write.breaks(after, how);
            }
            WireFault::TimeOut => {
                read.breaks(0, Break::Stall);
                write.breaks(0, Break::Stall);
            }
            WireFault::NoFault | WireFault::Refuse => {}
        }
        Self { io, read, write, is_reset: false, _open: open }
    }

    /// Returns the wrapped connection.
    pub fn get_ref(&self) -> &T {
        &self.io
    }

    fn reset<R>(&mut self) -> Poll<io::Result<R>> {
        self.is_reset = true;
        Poll::Ready(Err(ErrorKind::ConnectionReset.into()))
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// The fault, with the number of bytes that pass before it.
    fault: Option<(u64, Break)>,
    pause: Option<Pin<Box<Sleep>>>,
}

/// The next step in one direction.
enum Next {
    /// Up to this many bytes may pass.
    Pass(usize),
    Reset,
    Close,
    Stall,
    Garbage(Bytes),
}

impl Way {
    fn breaks(&mut self, after: u64, how: Break) {
        self.fault = Some((after, how));
    }

    /// Polls for the next step, which is pending while a drip waits.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Next> {
        let pause = match &self.fault {
            None => return Poll::Ready(Next::Pass(usize::MAX)),
            Some((after @ 1.., _)) => {
                let most = usize::try_from(*after).unwrap_or(usize::MAX);
                return Poll::Ready(Next::Pass(most));
            }
            Some((0, Break::Reset)) => return Poll::Ready(Next::Reset),
            Some((0, Break::Close)) => return Poll::Ready(Next::Close),
            Some((0, Break::Stall)) => return Poll::Ready(Next::Stall),
            Some((0, Break::Garbage(bytes))) if bytes.is_empty() => {
                self.fault = None;
                return Poll::Ready(Next::Pass(usize::MAX));
            }
            Some((0, Break::Garbage(bytes))) => return Poll::Ready(Next::Garbage(bytes.clone())),
            Some((0, Break::Drip(pause))) => *pause,
        };
        self.poll_pause(pause, cx).map(|()| Next::Pass(1))
    }

    fn poll_pause(&mut self, pause: Duration, cx: &mut Context<'_>) -> Poll<()> {
        self.pause.get_or_insert_with(|| Box::pin(sleep(pause))).as_mut().poll(cx)
    }

    /// Records that this many bytes have passed.
    fn passed(&mut self, bytes: usize) {
        if bytes > 0 {
            self.pause = None;
        }
        match &mut self.fault {
            Some((0, Break::Garbage(garbage))) => garbage.advance(bytes),
            Some((after, _)) => *after = after.saturating_sub(bytes as u64),
            None => {}
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for FaultyIo<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.is_reset {
            return this.reset();
        }
        let read = match ready!(this.read.poll_next(cx)) {
            Next::Pass(most) => {
                let most = most.min(buffer.remaining());
                let mut part = ReadBuf::new(buffer.initialize_unfilled_to(most));
                ready!(Pin::new(&mut this.io).poll_read(cx, &mut part))?;
                let read = part.filled().len();
                buffer.advance(read);
                read
            }
            Next::Garbage(bytes) => {
                let length = bytes.len().min(buffer.remaining());
                buffer.put_slice(&bytes[..length]);
                length
            }
            Next::Close => return Poll::Ready(Ok(())),
            Next::Stall => return Poll::Pending,
            Next::Reset => return this.reset(),
        };
        this.read.passed(read);
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for FaultyIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.is_reset {
            return this.reset();
        }
        loop {
            match ready!(this.write.poll_next(cx)) {
                Next::Pass(most) => {
                    let most = most.min(data.len());
                    let written = ready!(Pin::new(&mut this.io).poll_write(cx, &data[..most]))?;
                    this.write.passed(written);
                    return Poll::Ready(Ok(written));
                }
                Next::Garbage(bytes) => {
                    let written = ready!(Pin::new(&mut this.io).poll_write(cx, &bytes))?;
                    if written == 0 {
                        return Poll::Ready(Err(ErrorKind::WriteZero.into()));
                    }
                    this.write.passed(written);
                }
                Next::Close => {
                    ready!(Pin::new(&mut this.io).poll_shutdown(cx))?;
                    return Poll::Ready(Err(ErrorKind::BrokenPipe.into()));
                }
                Next::Stall => return Poll::Pending,
                Next::Reset => return this.reset(),
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(feature = "hyper")]
impl<T> hyper_util::client::legacy::connect::Connection for FaultyIo<T>
where
    T: hyper_util::client::legacy::connect::Connection,
{
    fn connected(&self) -> hyper_util::client::legacy::connect::Connected {
        self.io.connected()
    }
}
