//! A client's connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
#[cfg(feature = "tls")]
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use crate::reset::reset_when_dropped;

/// The encryption of a server's connections.
#[derive(Clone)]
pub(super) enum Security {
    Plain,
    #[cfg(feature = "tls")]
    Tls(TlsAcceptor),
}

/// A connection that a client has opened.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream<TcpStream>>),
}

impl Security {
    pub(super) fn scheme(&self) -> &'static str {
        match self {
            Self::Plain => "http",
            #[cfg(feature = "tls")]
            Self::Tls(_) => "https",
        }
    }

    /// Completes the handshake, if there is one.
    pub(super) async fn accept(&self, stream: TcpStream) -> io::Result<Stream> {
        match self {
            Self::Plain => Ok(Stream::Plain(stream)),
            #[cfg(feature = "tls")]
            Self::Tls(acceptor) => acceptor.accept(stream).await.map(|stream| Stream::Tls(Box::new(stream))),
        }
    }
}

impl Stream {
    /// Makes the connection end with a reset when it is dropped.
    pub(super) fn reset_on_drop(&self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => reset_when_dropped(stream),
            #[cfg(feature = "tls")]
            Self::Tls(stream) => reset_when_dropped(stream.get_ref().0),
        }
    }

    fn reader(&mut self) -> &mut (dyn AsyncRead + Unpin) {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream,
        }
    }

    fn writer(&mut self) -> &mut (dyn AsyncWrite + Unpin) {
        match self {
            Self::Plain(stream) => stream,
            #[cfg(feature = "tls")]
            Self::Tls(stream) => stream,
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.reader()).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.writer()).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.writer()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.writer()).poll_shutdown(cx)
    }
}
