//! TLS refusals, with rustls at both ends: a certificate that is refused is refused again, a
//! handshake that was cut off is not.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use reattempt_core::Verdict;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::server::{read_on, refused, serve};
use super::*;

/// A client that trusts nobody.
fn client() -> Client<HttpsConnector<HttpConnector>, Body> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    builder().build(https.build())
}

// trap 24
#[tokio::test]
async fn refused_certificate_stays_refused() {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let server = serve(move |connection| {
        let acceptor = acceptor.clone();
        async move { assert!(acceptor.accept(connection).await.is_err()) }
    });
    let uri = format!("https://localhost:{}/", server.await.port());
    assert_verdict(client().request(get(&uri)).await, Verdict::Permanent);
}

#[tokio::test]
async fn a_server_that_does_not_speak_tls() {
    let server = serve(async |mut connection| {
        connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        read_on(&mut connection).await;
    });
    let uri = format!("https://{}/", server.await);
    assert_verdict(client().request(get(&uri)).await, Verdict::Permanent);
}

#[tokio::test]
async fn a_connection_lost_in_the_handshake() {
    let server = serve(async |connection| drop(connection.peek(&mut [0]).await));
    let uri = format!("https://{}/", server.await);
    assert_verdict(client().request(get(&uri)).await, NOT_CONNECTED);
}

#[tokio::test]
async fn connection_refused() {
    let uri = format!("https://{}/", refused().await);
    assert_verdict(client().request(get(&uri)).await, NOT_CONNECTED);
}

#[tokio::test]
async fn scheme_that_the_connector_does_not_speak() {
    let uri = format!("ftp://{}/", refused().await);
    assert_verdict(client().request(get(&uri)).await, Verdict::Permanent);
}
