//! The certificate of the service, which names it and none of its addresses.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;
use tower::BoxError;

/// The name of the service in all requests and in its certificate. No resolver knows it.
pub const NAME: &str = "orders.example";

/// Makes the certificate and its key, and writes both into the store.
pub fn make(store: &Path) -> Result<(), BoxError> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    fs::write(store.join("certificate"), made.cert.der())?;
    fs::write(store.join("key"), made.signing_key.serialize_der())?;
    Ok(())
}

fn certificate(store: &Path) -> Result<CertificateDer<'static>, BoxError> {
    Ok(fs::read(store.join("certificate"))?.into())
}

/// Returns the TLS of a server.
pub fn acceptor(store: &Path) -> Result<TlsAcceptor, BoxError> {
    let key = PrivateKeyDer::Pkcs8(fs::read(store.join("key"))?.into());
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate(store)?], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns the TLS of a client that trusts the certificate in the store, if there is one.
pub fn client(store: &Path) -> Result<ClientConfig, BoxError> {
    let mut roots = RootCertStore::empty();
    if let Ok(certificate) = certificate(store) {
        roots.add(certificate)?;
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    Ok(config.with_no_client_auth())
}
