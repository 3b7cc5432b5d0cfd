//! TLS for the servers, with a certificate that is created for the test.

use std::fmt;
use std::io;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;

/// A self-signed certificate with its key, for [`Server::http1_tls`](crate::Server::http1_tls) and `Server::http2_tls`.
/// Each value has a new certificate.
///
/// A client rejects the certificate unless it is configured to trust it:
///
/// ```
/// use reattempt_faults::{Reply, Server, Tls};
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # runtime.block_on(async {
///
/// let tls = Tls::new()?;
/// let server = Server::http1_tls(&tls, [Reply::reset()]).await?;
/// // reqwest: Certificate::from_der; tonic: Certificate::from_pem; curl: --cacert FILE
/// let trusted = (tls.certificate_der(), tls.certificate_pem());
/// let url = server.url("/orders/7"); // https
/// # drop((trusted, url));
/// # drop(server.finish()); // a doc test without a client
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// [`WireFault`](crate::WireFault)s, in a relay or a connector between client and server, act below TLS. They count
/// encrypted bytes, so faults within the first bytes break the handshake:
///
/// | fault | what the client observes |
/// |---|---|
/// | `WireFault::read(0, Break::tls_alert(80))` | the server's alert during the handshake |
/// | `WireFault::read(100, Break::Reset)` | a connection that is lost during the handshake, as with `Break::Close` |
/// | `WireFault::read(0, Break::Stall)` | a handshake that never ends |
/// | `WireFault::read(100, Break::broken_record())` | a record that cannot be read, during the handshake |
/// | `WireFault::read(4000, Break::broken_record())` | the same, after the handshake |
#[derive(Clone)]
pub struct Tls {
    der: CertificateDer<'static>,
    pem: String,
    key_pem: String,
    config: Arc<ServerConfig>,
}

impl Tls {
    /// Creates a certificate for `localhost` and 127.0.0.1, the host of [`Server::url`](crate::Server::url).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Tls::for_names`].
    pub fn new() -> io::Result<Self> {
        Self::for_names(["localhost", "127.0.0.1"])
    }

    /// Creates a certificate for these names or addresses. A client that connects to a different name rejects the
    /// certificate.
    ///
    /// # Errors
    ///
    /// Returns an error of kind `InvalidInput` if a name is not ASCII or the key cannot be created.
    pub fn for_names<N: Into<String>>(names: impl IntoIterator<Item = N>) -> io::Result<Self> {
        let names = names.into_iter().map(Into::into).collect::<Vec<_>>();
        let made = rcgen::generate_simple_self_signed(names).map_err(invalid)?;
        let (der, pem) = (made.cert.der().clone(), made.cert.pem());
        let key = PrivateKeyDer::Pkcs8(made.signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(invalid)?
            .with_no_client_auth()
            .with_single_cert(vec![der.clone()], key)
            .map_err(invalid)?;
        Ok(Self { der, pem, key_pem: made.signing_key.serialize_pem(), config: Arc::new(config) })
    }

    /// Returns the certificate in DER.
    pub fn certificate_der(&self) -> &[u8] {
        &self.der
    }

    /// Returns the certificate in PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.pem
    }

    /// Returns the private key in PEM, as PKCS #8, for a server outside this crate, such as nginx, haproxy or a
    /// database.
    ///
    /// ```
    /// use reattempt_faults::Tls;
    ///
    /// let tls = Tls::new()?;
    /// let folder = std::env::temp_dir().join(format!("tls-{}", std::process::id()));
    /// std::fs::create_dir_all(&folder)?;
    /// std::fs::write(folder.join("certificate.pem"), tls.certificate_pem())?;
    /// std::fs::write(folder.join("key.pem"), tls.private_key_pem())?;
    /// # std::fs::remove_dir_all(&folder)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn private_key_pem(&self) -> &str {
        &self.key_pem
    }

    /// Returns the server's side of the handshake, in which it selects this protocol.
    pub(crate) fn acceptor(&self, protocol: &str) -> TlsAcceptor {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }
}

fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, error)
}

/// The output omits the key.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("certificate", &self.pem).finish_non_exhaustive()
    }
}
