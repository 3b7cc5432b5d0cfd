//! Tests of servers with TLS, and of faults below and above it, with hyper-util's client and tonic's channel.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::{Connect, HttpConnector};
use hyper_util::rt::TokioExecutor;
use reattempt_faults::{Break, Faults, Http2, Reply, Server, Tls, WireFault};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::time::timeout;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};
use tower::ServiceExt;

/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(30);

/// Longer than the server's part of a handshake, which has less than 2 KiB.
const LONG: usize = 16 * 1024;

fn http() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector
}

/// Returns a connector that trusts the certificate, above this one.
fn https<C>(tls: &Tls, inner: C) -> HttpsConnector<C> {
    let mut roots = RootCertStore::empty();
    roots.add(tls.certificate_der().to_vec().into()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    // The server selects the version.
    HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .enable_http1()
        .enable_http2()
        .wrap_connector(inner)
}

/// Makes one call over a new connection. Returns its version, its status and the length of its body, or its error with
/// all causes.
async fn call(connector: impl Connect + Clone + Send + Sync + 'static, url: String) -> String {
    let client = Client::builder(TokioExecutor::new()).build(connector);
    let request = Request::get(url).body(Empty::<bytes::Bytes>::new()).unwrap();
    let exchange = async {
        let response = match client.request(request).await {
            Ok(response) => response,
            Err(error) => return format!("connect: {}, {}", error.is_connect(), causes(&error)),
        };
        let status = format!("{:?} {}", response.version(), response.status());
        match response.into_body().collect().await {
            Ok(body) => format!("{status}, {} B", body.to_bytes().len()),
            Err(error) => format!("{status}, then {}", causes(&error)),
        }
    };
    timeout(HANGS, exchange).await.unwrap()
}

fn causes(error: &(dyn Error + 'static)) -> String {
    let mut causes: Vec<String> = vec![error.to_string()];
    let mut source = error.source();
    while let Some(error) = source {
        causes.push(error.to_string());
        source = error.source();
    }
    causes.join(": ")
}

async fn start(tls: &Tls, http2: bool, script: Vec<Reply>) -> Server {
    match http2 {
        true => Server::http2_tls(tls, Http2::new(), script).await.unwrap(),
        false => Server::http1_tls(tls, script).await.unwrap(),
    }
}

/// Returns the start of the text for a response with status 200.
fn ok(http2: bool) -> &'static str {
    if http2 { "HTTP/2.0 200 OK" } else { "HTTP/1.1 200 OK" }
}

fn body(length: usize) -> Vec<u8> {
    vec![b'x'; length]
}

#[tokio::test]
async fn servers_with_tls_follow_their_script() {
    let tls = Tls::new().unwrap();
    for http2 in [false, true] {
        let cut = Reply::default().body(body(9)).cut(if http2 { 5 } else { 44 });
        let closed = cut.clone().end_with(reattempt_faults::End::Close);
        let script =
            vec![Reply::reset(), closed, cut.end_with(reattempt_faults::End::Reset), Reply::default().body(body(LONG))];
        let server = start(&tls, http2, script).await;
        let mut seen = Vec::new();
        for path in ["/1", "/2", "/3", "/4"] {
            seen.push(call(https(&tls, http()), server.url(path)).await);
        }
        let begun = format!("{}, then ", ok(http2));
        assert!(seen[0].starts_with("connect: false") && seen[0].contains("reset"), "{seen:?}");
        // TLS is closed in order, unlike with `Break::Close` below it.
        assert!(seen[1].starts_with(&begun) && !seen[1].contains("close_notify"), "{seen:?}");
        assert!(seen[2].starts_with(&begun) && seen[2].contains("reset"), "{seen:?}");
        assert_eq!(seen[3], format!("{}, {LONG} B", ok(http2)));
        timeout(HANGS, server.ledger().all_closed()).await.unwrap();
        assert_eq!(server.ledger().connections(), 4);
        server.ledger().at_most_attempts(1).nothing_left_open();
    }
}

#[tokio::test]
async fn faults_below_tls_break_the_handshake() {
    let tls = Tls::new().unwrap();
    for http2 in [false, true] {
        let server = start(&tls, http2, Vec::new()).await;
        for (fault, cause) in [
            (WireFault::Refuse, "connection refused"),
            (WireFault::read(0, Break::tls_alert(80)), "received fatal alert: InternalError"),
            (WireFault::read(100, Break::Reset), "connection reset"),
            (WireFault::write(100, Break::Reset), "connection reset"),
            (WireFault::read(100, Break::Close), "eof"),
            (WireFault::read(200, Break::broken_record()), ""),
            (WireFault::read(0, Break::Garbage("220 mail.example ESMTP\r\n".into())), "corrupt message"),
        ] {
            let faults = Faults::new([fault.clone()]);
            let below = https(&tls, faults.connector(http()));
            let seen = call(below.clone(), server.url("/")).await;
            assert!(seen.starts_with("connect: true, ") && seen.contains(cause), "{fault:?}: {seen}");
            // The next connection has no fault.
            assert_eq!(call(below, server.url("/")).await, format!("{}, 0 B", ok(http2)), "{fault:?}");
        }
        let faults = Faults::new([WireFault::read(0, Break::Stall)]);
        let relay = faults.relay(server.address()).await.unwrap();
        let url = format!("https://{}/", relay.address());
        tokio::select! {
            biased;
            ended = call(https(&tls, http()), url.clone()) => panic!("the handshake ended: {ended}"),
            () = async { while faults.ledger().connections() == 0 { tokio::task::yield_now().await } } => {}
        }
        assert_eq!(call(https(&tls, http()), url).await, format!("{}, 0 B", ok(http2)));
        timeout(HANGS, server.ledger().all_closed()).await.unwrap();
        server.ledger().nothing_left_open();
    }
}

/// After the handshake, below TLS a broken record is detected, and above TLS the bytes of HTTP are counted.
#[tokio::test]
async fn tls_connection_breaks_after_handshake() {
    let tls = Tls::new().unwrap();
    for http2 in [false, true] {
        let server = start(&tls, http2, vec![Reply::default().body(body(LONG)); 4]).await;
        for how in [Break::Reset, Break::Close, Break::broken_record()] {
            let faults = Faults::new([WireFault::read(LONG as u64 / 2, how.clone())]);
            let below = https(&tls, faults.connector(http()));
            let seen = call(below, server.url("/")).await;
            assert!(!seen.starts_with("connect: true") && !seen.ends_with(" B"), "{how:?}: {seen}");
        }
        let faults = Faults::new([WireFault::read(LONG as u64, Break::Reset)]);
        let above = faults.connector(https(&tls, http()));
        let seen = call(above, server.url("/")).await;
        assert!(seen.starts_with(ok(http2)) && seen.contains("reset"), "{seen}");
    }
}

#[tokio::test]
async fn channel_of_tonic_meets_faults_below_tls() {
    let tls = Tls::new().unwrap();
    let server = Server::http2_tls(&tls, Http2::new(), [Reply::grpc("hello")]).await.unwrap();
    let faults = Faults::new([WireFault::read(0, Break::tls_alert(80))]);
    let trusting = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(tls.certificate_pem()));
    let endpoint = Endpoint::from_shared(server.url("")).unwrap().tls_config(trusting).unwrap();
    let channel = endpoint.connect_with_connector_lazy(faults.connector(http()));
    let call = || {
        let request = Request::post(server.url("/service/method")).body(tonic::body::Body::empty()).unwrap();
        timeout(HANGS, channel.clone().oneshot(request))
    };
    let error = call().await.unwrap().unwrap_err();
    assert!(causes(&error).contains("received fatal alert: InternalError"), "{}", causes(&error));
    let answer = call().await.unwrap().unwrap().into_body().collect().await.unwrap();
    assert_eq!(answer.trailers().unwrap()["grpc-status"], "0");
}

#[tokio::test]
async fn certificate_for_other_name_is_refused() {
    let tls = Tls::for_names(["other.example"]).unwrap();
    let server = start(&tls, false, Vec::new()).await;
    let seen = call(https(&tls, http()), server.url("/")).await;
    assert!(seen.starts_with("connect: true") && seen.contains("other.example"), "{seen}");
    timeout(HANGS, server.ledger().all_closed()).await.unwrap();
    assert_eq!((server.ledger().connections(), server.ledger().arrivals().len()), (1, 0));
}

#[test]
fn debug_of_tls_has_no_key() {
    assert_eq!(Tls::for_names(["ü"]).unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    let text = format!("{:?}", Tls::new().unwrap());
    assert!(text.contains("BEGIN CERTIFICATE") && !text.contains("PRIVATE"), "{text}");
}

/// Another server accepts the key together with the certificate.
#[test]
fn key_in_pem_is_of_the_certificate() {
    let (tls, other) = (Tls::new().unwrap(), Tls::new().unwrap());
    let accepted = |key: &Tls| {
        let key = PrivateKeyDer::from_pem_slice(key.private_key_pem().as_bytes()).unwrap();
        let certificate = CertificateDer::from_pem_slice(tls.certificate_pem().as_bytes()).unwrap();
        ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .is_ok()
    };
    assert_eq!([accepted(&tls), accepted(&other)], [true, false]);
}
