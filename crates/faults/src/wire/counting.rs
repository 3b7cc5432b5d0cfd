//! A connector that counts the requests on its connections.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use tower_service::Service;

use crate::ledger::CALL_HEADER;
use crate::sends::Sends;

/// The first bytes of an HTTP/2 connection (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame's header (RFC 9113 §4.1).
const FRAME_HEADER: usize = 9;
/// The type of a frame that opens a stream.
const HEADERS: u8 = 1;

impl Sends {
    /// Wraps a connector for hyper-util or tonic, and counts the requests that are written to the connections.
    ///
    /// Wrap the outermost connector, outside TLS, because encrypted bytes cannot be read. Over HTTP/1.1, each request
    /// is counted for its call, based on the line with the header [`CALL_HEADER`](crate::CALL_HEADER). A body that
    /// contains such a line would be counted too. Over HTTP/2, headers are compressed, so opened streams are counted
    /// for all calls together. A repeated request is then missed if another attempt was never sent.
    ///
    /// reqwest does not let a connector wrap its connections; use [`repeated_in`](Self::repeated_in) instead.
    pub fn connector<C>(&self, inner: C) -> CountingConnector<C> {
        CountingConnector { inner, sends: self.clone() }
    }
}

/// A connector whose connections count requests, created by [`Sends::connector`].
#[derive(Debug, Clone)]
pub struct CountingConnector<C> {
    inner: C,
    sends: Sends,
}

impl<C, R> Service<R> for CountingConnector<C>
where
    C: Service<R, Future: Send + 'static>,
{
    type Response = CountingIo<C::Response>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, C::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let (connecting, sends) = (self.inner.call(request), self.sends.clone());
        Box::pin(async move { Ok(CountingIo { io: connecting.await?, requests: Requests::default(), sends }) })
    }
}

/// A connection that counts requests, created by a [`CountingConnector`].
#[derive(Debug)]
pub struct CountingIo<T> {
    io: T,
    requests: Requests,
    sends: Sends,
}

impl<T: Read + Unpin> Read for CountingIo<T> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buf)
    }
}

impl<T: Write + Unpin> Write for CountingIo<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let written = ready!(Pin::new(&mut this.io).poll_write(cx, buf))?;
        for byte in buf.iter().take(written) {
            if let Some(call) = this.requests.read(*byte) {
                this.sends.sent(call);
            }
        }
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

impl<T: Connection> Connection for CountingIo<T> {
    fn connected(&self) -> Connected {
        self.io.connected()
    }
}

/// A parser that finds requests in the bytes that a client writes.
#[derive(Debug)]
enum Requests {
    /// The protocol is not known yet. This many bytes match the HTTP/2 preface.
    Begun(usize),
    Http1(HeaderLine),
    Http2(Frames),
}

impl Default for Requests {
    fn default() -> Self {
        Self::Begun(0)
    }
}

impl Requests {
    /// Reads a byte. Returns `Some` if it completes a request, with the request's call if the headers can be read.
    fn read(&mut self, byte: u8) -> Option<Option<u64>> {
        match self {
            Self::Begun(read) if PREFACE.get(*read) == Some(&byte) => {
                *read += 1;
                if *read == PREFACE.len() {
                    *self = Self::Http2(Frames::default());
                }
                None
            }
            // A method may begin like the preface, but the header line comes later.
            Self::Begun(_) => {
                *self = Self::Http1(HeaderLine::default());
                self.read(byte)
            }
            Self::Http1(line) => line.read(byte).map(Some),
            Self::Http2(frames) => frames.read(byte).then_some(None),
        }
    }
}

/// A search for the header line with a call's number.
#[derive(Debug, Default)]
struct HeaderLine {
    /// The number of bytes that match the start of the line.
    matched: usize,
    number: Option<u64>,
}

impl HeaderLine {
    fn read(&mut self, byte: u8) -> Option<u64> {
        let begin = b"\r\n".iter().chain(CALL_HEADER.as_bytes()).chain(b": ");
        match begin.clone().nth(self.matched) {
            Some(expected) if byte.to_ascii_lowercase() == *expected => self.matched += 1,
            // The start has no other carriage return, so a new match can begin only here.
            Some(_) => self.matched = usize::from(byte == b'\r'),
            None if byte.is_ascii_digit() => {
                let before = self.number.unwrap_or(0);
                self.number = Some(before.saturating_mul(10).saturating_add(u64::from(byte - b'0')));
            }
            None => {
                self.matched = usize::from(byte == b'\r');
                return self.number.take();
            }
        }
        None
    }
}

/// The frames of an HTTP/2 connection.
#[derive(Debug, Default)]
struct Frames {
    header: [u8; FRAME_HEADER],
    read: usize,
    /// The remaining bytes of the payload.
    payload: usize,
    last_stream: u32,
}

impl Frames {
    /// Returns `true` for the last byte of a frame header that opens a stream, which trailers do not.
    fn read(&mut self, byte: u8) -> bool {
        if self.payload > 0 {
            self.payload -= 1;
            return false;
        }
        self.header[self.read] = byte;
        self.read += 1;
        if self.read < FRAME_HEADER {
            return false;
        }
        self.read = 0;
        let [a, b, c, kind, _, id @ ..] = self.header;
        self.payload = u32::from_be_bytes([0, a, b, c]) as usize;
        let stream = u32::from_be_bytes(id) & (u32::MAX >> 1);
        let opens = kind == HEADERS && stream > self.last_stream;
        if opens {
            self.last_stream = stream;
        }
        opens
    }
}
