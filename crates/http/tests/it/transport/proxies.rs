//! Tests with the proxies of hyper-util: an HTTP tunnel, SOCKS 4 and SOCKS 5. Their error types are private, so these
//! tests also pin the texts by which the errors are recognised.

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::connect::proxy::{SocksV4, SocksV5, Tunnel};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::server::{read_head, read_on, refused, reset, serve};
use super::*;

const TARGET: &str = "http://server.example/";

/// Responses to CONNECT that another attempt may change. A `Tunnel` does not tell a 403 from a 503.
const FOR_NOW: [&[u8]; 11] = [
    b"HTTP/1.1 429 Too Many Requests\r\n\r\n",
    b"HTTP/1.1 500 Internal Server Error\r\n\r\n",
    b"HTTP/1.1 502 Bad Gateway\r\n\r\n",
    b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n\r\n",
    b"HTTP/1.1 504 Gateway Timeout\r\n\r\n",
    b"HTTP/1.1 403 Forbidden\r\n\r\n",
    b"",
    b"HTTP/1.1 200 Connection est",
    b"HTTP/1.1 200 OK\r\nvia: ",
    b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
    &[0; 9000],
];

/// Starts a proxy that sends this response to each CONNECT and hangs up.
async fn http_proxy(response: &'static [u8]) -> std::net::SocketAddr {
    serve(move |mut connection| async move {
        read_head(&mut connection).await;
        connection.write_all(response).await.unwrap();
        connection.shutdown().await.unwrap();
        read_on(&mut connection).await;
    })
    .await
}

/// Starts a SOCKS 5 proxy that selects this method, answers credentials with `accepted`, and requests with `reply`.
async fn socks5_proxy(method: u8, accepted: u8, reply: u8) -> std::net::SocketAddr {
    serve(move |mut connection| async move {
        connection.read_exact(&mut [0; 3]).await.unwrap();
        connection.write_all(&[5, method]).await.unwrap();
        if method == 2 {
            let _ = connection.read(&mut [0; 513]).await;
            let _ = connection.write_all(&[1, accepted]).await;
        }
        let _ = connection.read(&mut [0; 513]).await;
        let _ = connection.write_all(&[5, reply, 0, 1, 0, 0, 0, 0, 0, 0]).await;
        read_on(&mut connection).await;
    })
    .await
}

fn uri(proxy: std::net::SocketAddr) -> http::Uri {
    format!("http://{proxy}").parse().unwrap()
}

async fn error_through(connector: impl Connect + Clone + Send + Sync + 'static) -> legacy::Error {
    error_of(connector, TARGET).await
}

async fn error_of(connector: impl Connect + Clone + Send + Sync + 'static, target: &str) -> legacy::Error {
    let client: Client<_, Body> = builder().build(connector);
    client.request(get(target)).await.unwrap_err()
}

fn tunnel(proxy: std::net::SocketAddr) -> Tunnel<HttpConnector> {
    Tunnel::new(uri(proxy), HttpConnector::new())
}

fn socks5(proxy: std::net::SocketAddr) -> SocksV5<HttpConnector> {
    SocksV5::new(uri(proxy), HttpConnector::new())
}

fn socks4(proxy: std::net::SocketAddr) -> SocksV4<HttpConnector> {
    SocksV4::new(uri(proxy), HttpConnector::new())
}

// field 11, trap 63
#[tokio::test]
async fn failed_tunnel_is_no_connection() {
    for response in FOR_NOW {
        let error = error_through(tunnel(http_proxy(response).await)).await;
        assert_on_the_way(&String::from_utf8_lossy(response), &error, NOT_CONNECTED);
    }
}

// trap 63
#[tokio::test]
async fn unreachable_proxy_is_no_connection() {
    let resets = serve(async |connection| reset(connection)).await;
    for proxy in [refused().await, resets] {
        assert_on_the_way("tunnel", &error_through(tunnel(proxy)).await, NOT_CONNECTED);
        assert_on_the_way("SOCKS 5", &error_through(socks5(proxy)).await, NOT_CONNECTED);
        assert_on_the_way("SOCKS 4", &error_through(socks4(proxy)).await, NOT_CONNECTED);
    }
}

// trap 63
#[tokio::test]
async fn tunnel_that_wants_credentials_is_final() {
    let proxy = http_proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n").await;
    assert_on_the_way("407", &error_through(tunnel(proxy)).await, Verdict::Permanent);
}

/// RFC 1928 §6: reply 2 is the only one that forbids the connection.
// trap 63
#[tokio::test]
async fn socks5_replies_by_their_meaning() {
    for reply in 1..=9 {
        let error = error_through(socks5(socks5_proxy(0, 0, reply).await)).await;
        let expected = if reply == 2 { Verdict::Permanent } else { NOT_CONNECTED };
        assert_on_the_way(&format!("reply {reply}"), &error, expected);
    }
}

/// RFC 1928 §3 and RFC 1929 §2: the proxy refuses the methods or the credentials.
// trap 63
#[tokio::test]
async fn socks5_wanting_credentials_is_final() {
    for method in [2, 0xFF] {
        let error = error_through(socks5(socks5_proxy(method, 0, 0).await)).await;
        assert_on_the_way(&format!("method {method}"), &error, Verdict::Permanent);
    }
    let proxy = socks5(socks5_proxy(2, 1, 0).await).with_auth("user".to_owned(), "wrong".to_owned());
    assert_on_the_way("credentials", &error_through(proxy).await, Verdict::Permanent);
    let proxy = socks5(socks5_proxy(0xFF, 0, 0).await).with_auth("user".to_owned(), "right".to_owned());
    assert_on_the_way("no method", &error_through(proxy).await, Verdict::Permanent);
}

// trap 63
#[tokio::test]
async fn broken_socks_is_no_connection() {
    for answer in [&b""[..], b"\x05", b"\x05\x01", b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let proxy = serve(move |mut connection| async move {
            connection.read_u8().await.unwrap();
            connection.write_all(answer).await.unwrap();
            connection.shutdown().await.unwrap();
            read_on(&mut connection).await;
        });
        let proxy = proxy.await;
        assert_on_the_way(&format!("SOCKS 5 {answer:?}"), &error_through(socks5(proxy)).await, NOT_CONNECTED);
        assert_on_the_way(&format!("SOCKS 4 {answer:?}"), &error_through(socks4(proxy)).await, NOT_CONNECTED);
    }
}

/// Only 93 refuses the client itself: its user differs from the one that identd names.
// trap 63
#[tokio::test]
async fn socks4_replies_by_their_meaning() {
    for (reply, expected) in [(91, NOT_CONNECTED), (92, NOT_CONNECTED), (93, Verdict::Permanent)] {
        let proxy = serve(move |mut connection| async move {
            let _ = connection.read(&mut [0; 513]).await.unwrap();
            connection.write_all(&[0, reply, 0, 0, 0, 0, 0, 0]).await.unwrap();
            read_on(&mut connection).await;
        });
        let error = error_through(socks4(proxy.await)).await;
        assert_on_the_way(&format!("reply {reply}"), &error, expected);
    }
}

/// SOCKS 4 has no IPv6, and SOCKS 5 no names beyond 255 bytes.
// trap 63
#[tokio::test]
async fn target_beyond_socks_is_final() {
    let proxy = serve(async |mut connection| read_on(&mut connection).await).await;
    let error = error_of(socks4(proxy), "http://[::1]/").await;
    assert_eq!(verdict_of_error(&error), Some(Verdict::Permanent), "{error:?}");
    let error = error_of(socks5(proxy), &format!("http://{}/", "a".repeat(256))).await;
    assert_eq!(verdict_of_error(&error), Some(Verdict::Permanent), "{error:?}");
}
