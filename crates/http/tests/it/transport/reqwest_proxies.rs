//! Tests with reqwest's resolvers, and with its proxies as far as they need no TLS. Tunnels and SOCKS need reqwest's
//! TLS, which only `checks/matrix` has.

use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Client, Proxy};
use tokio::io::AsyncWriteExt;

use super::server::{read_head, read_on, refused, serve};
use super::*;

/// A resolver whose error is no io error.
struct Failing;

impl Resolve for Failing {
    fn resolve(&self, _: Name) -> Resolving {
        Box::pin(async { Err("timed out".into()) })
    }
}

// field 12, trap 63
#[tokio::test]
async fn reqwest_resolver_is_no_connection() {
    let client = Client::builder().no_proxy().dns_resolver(Arc::new(Failing)).build().unwrap();
    let error = client.post("http://server.example/").send().await.unwrap_err();
    assert_on_the_way("resolver", &error, NOT_CONNECTED);
}

async fn error_through(proxy: SocketAddr) -> reqwest::Error {
    let proxy = Proxy::all(format!("http://{proxy}")).unwrap();
    let client = Client::builder().proxy(proxy).build().unwrap();
    client.post("http://server.example/").send().await.unwrap_err()
}

/// A request for `http` is sent to the proxy itself. Once it has a connection, its failures are those of a server.
// trap 24
#[tokio::test]
async fn plain_proxy_fails_like_a_server() {
    let refused = error_through(refused().await).await;
    assert_eq!(verdict_of_error(&refused), Some(NOT_CONNECTED), "{refused:?}");
    for answer in ["", "HTTP/1.1 502 Bad Gate", "SSH-2.0-OpenSSH_9.9\r\n\r\n"] {
        let proxy = serve(move |mut connection| async move {
            read_head(&mut connection).await;
            connection.write_all(answer.as_bytes()).await.unwrap();
            connection.shutdown().await.unwrap();
            read_on(&mut connection).await;
        });
        let error = error_through(proxy.await).await;
        assert_eq!(verdict_of_error(&error), Some(LOST), "{answer:?}: {error:?}");
    }
}
