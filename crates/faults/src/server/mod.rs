//! Scripted servers on loopback ports.

mod http1;
#[cfg(feature = "http2")]
mod http2;
mod reply;
mod request;
mod stream;
#[cfg(feature = "http2")]
mod tap;

use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::faults::{Faults, Shared, Unused};
use crate::ledger::Ledger;
use crate::task::Task;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use stream::{Security, Stream};

#[cfg(feature = "http2")]
pub use http2::Http2;
pub use reply::{End, Read, Reply};

/// A server on a loopback port. It sends the replies in its script, and 200 to requests without a scripted reply.
///
/// The test owns it. Dropping it closes its connections, and panics if some replies in the script were not used.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    faults: Faults<Reply>,
    _task: Task,
}

impl Server {
    /// Starts an HTTP/1.1 server.
    ///
    /// # Errors
    ///
    /// Returns the operating system's error if no port can be opened. Returns [`Unsupported`], in an error of kind
    /// `InvalidInput`, if the script has a reply that HTTP/1.1 cannot express.
    pub async fn http1(faults: impl Into<Faults<Reply>>) -> io::Result<Self> {
        Self::start_http1(Security::Plain, faults.into()).await
    }

    /// Starts an HTTP/1.1 server with TLS.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Server::http1`].
    #[cfg(feature = "tls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
    pub async fn http1_tls(tls: &Tls, faults: impl Into<Faults<Reply>>) -> io::Result<Self> {
        Self::start_http1(Security::Tls(tls.acceptor("http/1.1")), faults.into()).await
    }

    /// Starts an HTTP/2 server without TLS, for clients with prior knowledge, including gRPC clients.
    ///
    /// # Errors
    ///
    /// Returns the operating system's error if no port can be opened. Returns [`Unsupported`], in an error of kind
    /// `InvalidInput`, if the script has [`Read::Bytes`] or an informational response with a status outside 100 to 199.
    #[cfg(feature = "http2")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http2")))]
    pub async fn http2(faults: impl Into<Faults<Reply>>) -> io::Result<Self> {
        Self::http2_with(Http2::default(), faults).await
    }

    /// Starts an HTTP/2 server with custom settings, such as few streams or slow window updates.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Server::http2`].
    #[cfg(feature = "http2")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http2")))]
    pub async fn http2_with(settings: Http2, faults: impl Into<Faults<Reply>>) -> io::Result<Self> {
        Self::start_http2(Security::Plain, settings, faults.into()).await
    }

    /// Starts an HTTP/2 server with TLS. Its clients must offer `h2` in the handshake (ALPN).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Server::http2`].
    #[cfg(all(feature = "http2", feature = "tls"))]
    #[cfg_attr(docsrs, doc(cfg(all(feature = "http2", feature = "tls"))))]
    pub async fn http2_tls(tls: &Tls, settings: Http2, faults: impl Into<Faults<Reply>>) -> io::Result<Self> {
        Self::start_http2(Security::Tls(tls.acceptor("h2")), settings, faults.into()).await
    }

    async fn start_http1(security: Security, faults: Faults<Reply>) -> io::Result<Self> {
        let faults = supported(faults, Reply::needs_http2, "HTTP/1.1")?;
        Self::start(security, faults, http1::serve).await
    }

    #[cfg(feature = "http2")]
    async fn start_http2(security: Security, settings: Http2, faults: Faults<Reply>) -> io::Result<Self> {
        let faults = supported(faults, Reply::needs_http1, "HTTP/2")?;
        let serve = move |stream, connection, shared| http2::serve(stream, connection, settings, shared);
        Self::start(security, faults, serve).await
    }

    async fn start<Serving>(
        security: Security,
        faults: Faults<Reply>,
        serve: impl Fn(Stream, usize, Arc<Shared<Reply>>) -> Serving + Clone + Send + Sync + 'static,
    ) -> io::Result<Self>
    where
        Serving: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (shared, scheme) = (Arc::clone(&faults.shared), security.scheme());
        let task = Task::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // An error means that the connection is already closed.
                let _ = stream.set_nodelay(true);
                let (serve, security, shared) = (serve.clone(), security.clone(), Arc::clone(&shared));
                connections.spawn(async move {
                    let (connection, _open) = shared.ledger.connect();
                    // A client may reject the certificate or disconnect during the handshake.
                    if let Ok(stream) = security.accept(stream).await {
                        serve(stream, connection, shared).await;
                    }
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Ok(Self { address, scheme, faults, _task: task })
    }

    /// Returns the address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the URL for a path, which must start with `/`.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Returns the ledger.
    pub fn ledger(&self) -> &Ledger {
        self.faults.ledger()
    }

    /// Ends all faults. The server then replies to every request with 200, or with the reply set with
    /// [`Script::otherwise`](crate::Script::otherwise). Unused replies still fail the test.
    pub fn recover(&self) {
        self.faults.recover();
    }

    /// Stops the server.
    ///
    /// # Errors
    ///
    /// Returns the replies that were not used, if any.
    pub fn finish(self) -> Result<(), Unused> {
        self.faults.finish()
    }
}

/// Returns an error if the script has a reply that the protocol does not support.
fn supported(
    faults: Faults<Reply>,
    is_unsupported: impl Fn(&Reply) -> bool,
    protocol: &'static str,
) -> io::Result<Faults<Reply>> {
    match faults.find(is_unsupported) {
        None => Ok(faults),
        Some(step_number) => {
            // An unused script must not cause a second failure.
            let _ = faults.finish();
            Err(io::Error::new(io::ErrorKind::InvalidInput, Unsupported { step_number, protocol }))
        }
    }
}

/// The error for a script with a reply that the server's protocol cannot express.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsupported {
    step_number: Option<usize>,
    protocol: &'static str,
}

impl Unsupported {
    /// Returns the number of the step in the script, counted from 1, or `None` if the reply is not in a step.
    pub fn step_number(&self) -> Option<usize> {
        self.step_number
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.step_number {
            Some(number) => write!(f, "step {number}: the reply is not possible in {}", self.protocol),
            None => write!(f, "a reply outside the steps is not possible in {}", self.protocol),
        }
    }
}

impl Error for Unsupported {}
