//! A server on loopback that ends a response after any of its bytes, over HTTP/1 and HTTP/2, with and without TLS.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// The length of each response body.
pub(crate) const LENGTH: usize = 2048;

/// The protocol, and the way in which the length of a body is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    Length,
    Chunked,
    /// The connection ends with the body.
    Unknown,
    Http2Length,
    Http2Unknown,
}

/// The end of a response that breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The connection is closed, with TLS without an alert.
    Fin,
    /// The connection is reset.
    Rst,
    /// The HTTP/2 stream is reset with this code.
    Stream(u8),
}

/// The server's side.
#[derive(Debug)]
pub(crate) struct Wire {
    manner: Manner,
    /// The number of bytes of the body in the next response, and its end. Without a value, the response is whole.
    next: Mutex<Option<(usize, End)>>,
    arrivals: AtomicUsize,
}

impl Manner {
    pub(crate) fn is_http2(self) -> bool {
        matches!(self, Self::Http2Length | Self::Http2Unknown)
    }

    /// Returns the head and the body in the bytes of HTTP/1, or HTTP/2's head in HPACK and the body.
    fn bytes(self) -> (&'static [u8], Vec<u8>) {
        let content = CONTENT.to_vec();
        match self {
            Self::Length => (b"HTTP/1.1 200 OK\r\ncontent-length: 2048\r\n\r\n", content),
            Self::Unknown => (b"HTTP/1.1 200 OK\r\n\r\n", content),
            Self::Chunked => {
                let (first, second) = content.split_at(1000);
                let body = [&b"3e8\r\n"[..], first, b"\r\n418\r\n", second, b"\r\n0\r\n\r\n"].concat();
                (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", body)
            }
            // `:status: 200` and a literal `content-length: 2048`.
            Self::Http2Length => (b"\x88\x0f\x0d\x042048", content),
            Self::Http2Unknown => (b"\x88", content),
        }
    }

    /// Returns the length of a body on the wire.
    pub(crate) fn length(self) -> usize {
        self.bytes().1.len()
    }
}

/// The body of each response.
pub(crate) static CONTENT: LazyLock<Bytes> =
    LazyLock::new(|| (0..LENGTH).map(|at| u8::try_from(at % 251).unwrap()).collect());

impl Wire {
    /// Starts a server. With TLS, it returns the settings of a client that trusts it.
    pub(crate) async fn start(manner: Manner, tls: bool) -> (Arc<Self>, SocketAddr, Option<ClientConfig>) {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let wire = Arc::new(Self { manner, next: Mutex::default(), arrivals: AtomicUsize::new(0) });
        let (acceptor, trusting) = tls.then(tls_settings).unzip();
        let server = Arc::clone(&wire);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(Arc::clone(&server).connection(connection, acceptor.clone()));
            }
        });
        (wire, address, trusting)
    }

    /// Breaks the next response after these bytes of its body.
    pub(crate) fn break_next(&self, cut: usize, end: End) {
        *self.next.lock().unwrap() = Some((cut, end));
    }

    /// Returns the number of requests since the last call.
    pub(crate) fn take_arrivals(&self) -> usize {
        self.arrivals.swap(0, Ordering::SeqCst)
    }

    async fn connection(self: Arc<Self>, connection: TcpStream, acceptor: Option<TlsAcceptor>) {
        connection.set_nodelay(true).unwrap();
        let (end, connection) = match acceptor {
            None => {
                let mut connection = connection;
                (self.serve(&mut connection).await, connection)
            }
            Some(acceptor) => {
                let mut stream = acceptor.accept(connection).await.unwrap();
                (self.serve(&mut stream).await, stream.into_inner().0)
            }
        };
        if matches!(end, Ok(Some(End::Rst))) {
            #[allow(deprecated, reason = "`set_zero_linger` is newer than the oldest tokio; zero never blocks")]
            connection.set_linger(Some(Duration::ZERO)).unwrap();
        }
    }

    /// Serves a connection until the client closes it, or a response is to end it.
    async fn serve<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) -> io::Result<Option<End>> {
        if self.manner.is_http2() { self.serve_http2(stream).await } else { self.serve_http1(stream).await }
    }

    /// Counts a request, and returns the end of its response.
    fn arrive(&self) -> Option<(usize, End)> {
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        self.next.lock().unwrap().take()
    }

    async fn serve_http1<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) -> io::Result<Option<End>> {
        let (head, body) = self.manner.bytes();
        loop {
            read_http1(stream).await?;
            let broken = self.arrive();
            let part = broken.map_or(&body[..], |(cut, _)| &body[..cut]);
            stream.write_all(&[head, part].concat()).await?;
            stream.flush().await?;
            match broken {
                Some((_, end)) => return Ok(Some(end)),
                None if self.manner == Manner::Unknown => {
                    stream.shutdown().await?;
                    return Ok(None);
                }
                None => {}
            }
        }
    }

    async fn serve_http2<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: &mut S) -> io::Result<Option<End>> {
        let (head, body) = self.manner.bytes();
        stream.read_exact(&mut [0; 24]).await?;
        // Settings, and a window for the bodies of all requests.
        stream.write_all(&[frame(4, 0, 0, &[]), frame(8, 0, 0, &[0, 16, 0, 0])].concat()).await?;
        loop {
            let mut start = [0; 9];
            stream.read_exact(&mut start).await?;
            let length = usize::from(start[1]) << 8 | usize::from(start[2]);
            stream.read_exact(&mut vec![0; length]).await?;
            let (kind, flags) = (start[3], start[4]);
            let number = u32::from_be_bytes([start[5], start[6], start[7], start[8]]);
            match kind {
                // The end of a request in its head or body.
                0 | 1 if flags & 1 == 1 => {
                    let broken = self.arrive();
                    let mut answer = frame(1, 4, number, head);
                    match broken {
                        None => answer.extend(frame(0, 1, number, &body)),
                        Some((0, _)) => {}
                        Some((cut, _)) => answer.extend(frame(0, 0, number, &body[..cut])),
                    }
                    if let Some((_, End::Stream(code))) = broken {
                        answer.extend(frame(3, 0, number, &[0, 0, 0, code]));
                    }
                    stream.write_all(&answer).await?;
                    stream.flush().await?;
                    if let Some((_, end @ (End::Fin | End::Rst))) = broken {
                        return Ok(Some(end));
                    }
                }
                4 if flags & 1 == 0 => {
                    stream.write_all(&frame(4, 1, 0, &[])).await?;
                    stream.flush().await?;
                }
                _ => {}
            }
        }
    }
}

/// Reads a request with its body.
async fn read_http1<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<()> {
    let mut read = Vec::new();
    loop {
        if stream.read_buf(&mut read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8_lossy(&read);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head
            .split_once("content-length: ")
            .map_or(0, |(_, rest)| rest.lines().next().unwrap_or_default().parse().unwrap());
        if body.len() >= length {
            return Ok(());
        }
    }
}

/// Returns an HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u16::try_from(payload.len()).unwrap().to_be_bytes();
    [&[0, length[0], length[1], kind, flags][..], &stream.to_be_bytes(), payload].concat()
}

/// Returns the settings of a server, and of a client that trusts it.
fn tls_settings() -> (TlsAcceptor, ClientConfig) {
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let certificate: CertificateDer<'static> = certified.cert.der().clone();
    let provider = Arc::new(ring::default_provider());
    let server = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let server = server.unwrap().with_no_client_auth().with_single_cert(vec![certificate.clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    (TlsAcceptor::from(Arc::new(server)), trusting(roots))
}

/// Returns the settings of a client that trusts these certificates.
pub(crate) fn trusting(roots: RootCertStore) -> ClientConfig {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth()
}
