//! Tests of TLS refusals, with rustls at both ends: a refused certificate is refused again, an interrupted handshake is
//! not, and a broken record costs only its connection.

use std::sync::Arc;

use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use reattempt_core::Verdict;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection};

use super::server::{read_head, read_http2_headers, read_on, refused, serve};
use super::*;

type HttpsClient = Client<HttpsConnector<HttpConnector>, Body>;

/// Returns a client that trusts these certificates and has none itself.
fn client_that_trusts(roots: RootCertStore, http2: bool) -> HttpsClient {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let https = HttpsConnectorBuilder::new().with_tls_config(config).https_or_http().enable_http1();
    builder().http2_only(http2).build(https.build())
}

/// Returns a client that trusts no certificate.
fn client() -> HttpsClient {
    client_that_trusts(RootCertStore::empty(), false)
}

fn roots(certificate: &CertificateDer<'static>) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    roots
}

/// Returns a server's TLS settings and its certificate. If `authenticates`, the server requests a client certificate.
fn tls(authenticates: bool) -> (TlsAcceptor, CertificateDer<'static>) {
    let certified = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(certified.signing_key.serialize_der().into());
    let certificate = certified.cert.der().clone();
    let provider = Arc::new(ring::default_provider());
    let config =
        ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions().unwrap();
    let trusted = Arc::new(roots(&certificate));
    let verifier = WebPkiClientVerifier::builder_with_provider(trusted, provider).build().unwrap();
    let config = match authenticates {
        true => config.with_client_cert_verifier(verifier),
        false => config.with_no_client_auth(),
    };
    let config = config.with_single_cert(vec![certificate.clone()], key).unwrap();
    (TlsAcceptor::from(Arc::new(config)), certificate)
}

// trap 24
#[tokio::test]
async fn refused_certificate_stays_refused() {
    let (acceptor, _) = tls(false);
    let server = serve(move |connection| {
        let acceptor = acceptor.clone();
        async move { assert!(acceptor.accept(connection).await.is_err()) }
    });
    let uri = format!("https://localhost:{}/", server.await.port());
    assert_verdict(client().request(get(&uri)).await, Verdict::Permanent);
}

/// Returns the URI of a server that refuses each client in the handshake.
async fn refuses_clients(acceptor: TlsAcceptor) -> String {
    let server = serve(move |mut connection| {
        let acceptor = acceptor.clone();
        async move {
            assert!(acceptor.accept(&mut connection).await.is_err());
            read_on(&mut connection).await;
        }
    });
    format!("https://localhost:{}/", server.await.port())
}

/// In TLS 1.3 the client's certificate is refused after the client has sent its request.
// trap 24
#[tokio::test]
async fn client_without_certificate_is_refused() {
    for http2 in [false, true] {
        let (acceptor, certificate) = tls(true);
        let uri = refuses_clients(acceptor).await;
        let client = client_that_trusts(roots(&certificate), http2);
        assert_verdict(client.request(get(&uri)).await, Verdict::Permanent);
    }
}

/// A record that cannot be decrypted (RFC 8446 §5.2).
const UNREADABLE: [u8; 37] = {
    let mut record = [0; 37];
    [record[0], record[1], record[2], record[4]] = [23, 3, 3, 32];
    record
};

/// Returns the alert of a server that could not decrypt a record.
fn bad_record_mac(mut tls: ServerConnection) -> Vec<u8> {
    tls.read_tls(&mut &UNREADABLE[..]).unwrap();
    tls.process_new_packets().unwrap_err();
    let mut alert = Vec::new();
    tls.write_tls(&mut alert).unwrap();
    alert
}

/// A request may have been processed before the connection broke.
// trap 24
#[tokio::test]
async fn broken_tls_record_is_a_lost_connection() {
    let ends: [fn(ServerConnection) -> Vec<u8>; 2] = [|_| UNREADABLE.to_vec(), bad_record_mac];
    for (end, http2) in ends.into_iter().flat_map(|end| [(end, false), (end, true)]) {
        let (acceptor, certificate) = tls(false);
        let server = serve(move |connection: TcpStream| {
            let acceptor = acceptor.clone();
            async move {
                let mut stream = acceptor.accept(connection).await.unwrap();
                match http2 {
                    true => read_http2_headers(&mut stream).await,
                    false => read_head(&mut stream).await,
                }
                stream.flush().await.unwrap();
                let (mut connection, tls) = stream.into_inner();
                connection.write_all(&end(tls)).await.unwrap();
                read_on(&mut connection).await;
            }
        });
        let uri = format!("https://localhost:{}/", server.await.port());
        let client = client_that_trusts(roots(&certificate), http2);
        assert_verdict(client.request(get(&uri)).await, LOST);
    }
}

/// According to RFC 8446 §6.2, an internal_error (80) is unrelated to the peer.
// trap 24
#[tokio::test]
async fn alert_in_handshake_by_its_meaning() {
    let permanent =
        [40, 42, 43, 44, 45, 46, 48, 49, 51, 70, 71, 112, 116, 120].map(|alert| (alert, Verdict::Permanent));
    let for_now = [10, 20, 22, 47, 50, 80, 90].map(|alert| (alert, NOT_CONNECTED));
    for (alert, expected) in permanent.into_iter().chain(for_now) {
        let server = serve(move |mut connection: TcpStream| async move {
            connection.read_u8().await.unwrap();
            connection.write_all(&[21, 3, 3, 0, 2, 2, alert]).await.unwrap();
            read_on(&mut connection).await;
        });
        let uri = format!("https://{}/", server.await);
        assert_verdict(client().request(get(&uri)).await, expected);
    }
}

/// A proxy or balancer whose backend is gone may respond like this, without TLS.
// trap 63
#[tokio::test]
async fn a_server_that_does_not_speak_tls() {
    let server = serve(async |mut connection| {
        connection.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        read_on(&mut connection).await;
    });
    let uri = format!("https://{}/", server.await);
    assert_verdict(client().request(get(&uri)).await, NOT_CONNECTED);
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

/// In TLS 1.3 the server verifies the client's signature after the client has sent its request. The alert is
/// decrypt_error (51).
// trap 24
#[tokio::test]
async fn clients_wrong_signature_is_refused() {
    let (acceptor, certificate) = tls(true);
    let uri = refuses_clients(acceptor).await;
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(other.signing_key.serialize_der().into());
    let key = ring::sign::any_supported_type(&key).unwrap();
    let signs = SingleCertAndKey::from(CertifiedKey::new(vec![certificate.clone()], key));
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(&certificate))
        .with_client_cert_resolver(Arc::new(signs));
    let https = HttpsConnectorBuilder::new().with_tls_config(config).https_only().enable_http1().build();
    let client: HttpsClient = builder().build(https);
    let error = client.request(get(&uri)).await.unwrap_err();
    assert!(!error.is_connect(), "the handshake was over: {error:?}");
    assert_verdict(Err::<(), _>(error), Verdict::Permanent);
}
