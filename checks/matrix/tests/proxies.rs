//! reqwest's tunnels and SOCKS proxies. They need reqwest's TLS, which the tests of the workspace do not have.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

#[allow(dead_code, reason = "only one of its servers is used here")]
#[path = "../../../crates/http/tests/it/transport/server.rs"]
mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{Failure, FailureKind, Fault, Verdict};
use reattempt_faults::{Reply, Script, Server, Tls};
use reattempt_http::{fault_of_error, verdict_of_error};
use reqwest::{Client, Proxy};
use rustls::{ClientConfig, RootCertStore};
use server::serve;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const NOT_CONNECTED: Verdict = Verdict::NotProcessed(Failure::new(FailureKind::Connect));

/// The bound of a test, which only a hang exceeds.
const BOUND: Duration = Duration::from_secs(20);

/// Starts a proxy that sends this response to each CONNECT and hangs up.
async fn http_proxy(response: &'static [u8]) -> SocketAddr {
    serve(move |mut connection| async move {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(connection.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"CONNECT server.example:443 "), "{head:?}");
        connection.write_all(response).await.unwrap();
        connection.shutdown().await.unwrap();
        let _ = connection.read_to_end(&mut Vec::new()).await;
    })
    .await
}

/// Starts a SOCKS 5 proxy that selects this method, and answers each request with `reply`.
async fn socks5_proxy(method: u8, reply: u8) -> SocketAddr {
    serve(move |mut connection| async move {
        connection.read_exact(&mut [0; 3]).await.unwrap();
        connection.write_all(&[5, method]).await.unwrap();
        let _ = connection.read(&mut [0; 513]).await;
        let _ = connection.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        let _ = connection.read_to_end(&mut Vec::new()).await;
    })
    .await
}

/// Returns the error of a POST through this proxy, by a client that trusts the certificate, if there is one.
async fn error_through(scheme: &str, proxy: SocketAddr, target: &str, trusted: Option<&Tls>) -> reqwest::Error {
    let mut roots = RootCertStore::empty();
    if let Some(tls) = trusted {
        roots.add(tls.certificate_der().to_vec().into()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let proxy = Proxy::all(format!("{scheme}://localhost:{}", proxy.port())).unwrap();
    let client = Client::builder().proxy(proxy).tls_backend_preconfigured(config.with_no_client_auth());
    let call = client.build().unwrap().post(target).send();
    tokio::time::timeout(BOUND, call).await.unwrap().unwrap_err()
}

#[track_caller]
fn assert_on_the_way(case: &str, error: &reqwest::Error, expected: Verdict) {
    assert_eq!(verdict_of_error(error), Some(expected), "{case}: {error:?}");
    assert_eq!(fault_of_error(error), Some(Fault::Local), "{case}: {error:?}");
}

// field 11, trap 63
#[tokio::test]
async fn reqwest_tunnels_by_their_meaning() {
    for (response, expected) in [
        (&b"HTTP/1.1 429 Too Many Requests\r\n\r\n"[..], NOT_CONNECTED),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", NOT_CONNECTED),
        (b"HTTP/1.1 503 Service Unavailable\r\n\r\n", NOT_CONNECTED),
        // hyper-util's tunnel reports it like a 503.
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", NOT_CONNECTED),
        (b"", NOT_CONNECTED),
        (b"HTTP/1.1 200 Connection est", NOT_CONNECTED),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", NOT_CONNECTED),
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", Verdict::Permanent),
    ] {
        let error = error_through("http", http_proxy(response).await, "https://server.example/", None).await;
        assert_on_the_way(&String::from_utf8_lossy(response), &error, expected);
    }
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = error_through("http", closed, "https://server.example/", None).await;
    assert_on_the_way("refused", &error, NOT_CONNECTED);
}

/// A proxy that hangs up or sends junk within the tunnel breaks the handshake with the server.
// trap 63
#[tokio::test]
async fn reqwest_broken_handshake_in_a_tunnel() {
    for response in [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 503 Down\r\n\r\n"] {
        let error = error_through("http", http_proxy(response).await, "https://server.example/", None).await;
        assert_eq!(verdict_of_error(&error), Some(NOT_CONNECTED), "{error:?}");
    }
}

// trap 63
#[tokio::test]
async fn reqwest_https_proxies_by_their_meaning() {
    let tls = Tls::new().unwrap();
    let proxy = || async {
        let replies = Script::new([Reply::status(http::StatusCode::SERVICE_UNAVAILABLE)]).may_remain();
        Server::http1_tls(&tls, replies).await.unwrap()
    };
    let server = proxy().await;
    let error = error_through("https", server.address(), "https://server.example/", Some(&tls)).await;
    assert_on_the_way("503", &error, NOT_CONNECTED);
    let server = proxy().await;
    let error = error_through("https", server.address(), "https://server.example/", None).await;
    assert_on_the_way("untrusted certificate", &error, Verdict::Permanent);
    let hangs_up = serve(async |connection| drop(connection.peek(&mut [0]).await)).await;
    let error = error_through("https", hangs_up, "https://server.example/", None).await;
    assert_on_the_way("hangs up", &error, NOT_CONNECTED);
}

// trap 63
#[tokio::test]
async fn reqwest_socks_by_their_meaning() {
    // reqwest resolves the name itself for `socks5`, and leaves it to the proxy for `socks5h`.
    for (scheme, target) in [("socks5", "http://127.0.0.1/"), ("socks5h", "https://server.example/")] {
        for reply in 1..=9 {
            let error = error_through(scheme, socks5_proxy(0, reply).await, target, None).await;
            let expected = if reply == 2 { Verdict::Permanent } else { NOT_CONNECTED };
            assert_on_the_way(&format!("{scheme}, reply {reply}"), &error, expected);
        }
        let error = error_through(scheme, socks5_proxy(0xFF, 0).await, target, None).await;
        assert_on_the_way(&format!("{scheme}, no method"), &error, Verdict::Permanent);
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let error = error_through(scheme, closed, target, None).await;
        assert_on_the_way(&format!("{scheme}, refused"), &error, NOT_CONNECTED);
    }
}
