//! Requests with odd heads, forwarded by a proxy through the retry layer to a backend that fails.

use std::net::SocketAddr;
use std::time::Duration;

use crate::support::quick;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use reattempt::{ReplayBody, RetryLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::{ServiceBuilder, service_fn};

/// The time after which a call counts as hanging.
const HANGS: Duration = Duration::from_secs(10);

/// Serves one connection; the backend refuses every attempt of its requests.
async fn proxy(http2: bool, tasks: &mut JoinSet<()>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let backend = service_fn(async |_: Request<ReplayBody<Incoming>>| -> http::Result<Response<Full<Bytes>>> {
        Response::builder().status(503).body(Full::new("refused".into()))
    });
    let client = ServiceBuilder::new().layer(RetryLayer::new(quick())).service(backend);
    let service = TowerToHyperService::new(client);
    tasks.spawn(async move {
        let io = TokioIo::new(listener.accept().await.unwrap().0);
        // The client may end the connection in any way.
        let _ = if http2 {
            http2::Builder::new(TokioExecutor::new()).serve_connection(io, service).await
        } else {
            http1::Builder::new().serve_connection(io, service).await
        };
    });
    address
}

// trap 34
#[tokio::test]
async fn http1_empty_scheme_call_ends() {
    let mut tasks = JoinSet::new();
    let mut stream = TcpStream::connect(proxy(false, &mut tasks).await).await.unwrap();
    stream.write_all(b"GET ://a/ HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    timeout(HANGS, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
}

/// `HeaderName` accepts a quotation mark from HTTP/2, where HTTP/1 has none.
// trap 34
#[tokio::test]
async fn http2_quoted_header_name_call_ends() {
    let mut tasks = JoinSet::new();
    let stream = TcpStream::connect(proxy(true, &mut tasks).await).await.unwrap();
    let (client, connection) = h2::client::handshake(stream).await.unwrap();
    tasks.spawn(async {
        let _ = connection.await;
    });
    let mut client = client.ready().await.unwrap();
    let mut request = Request::get("http://a/").body(()).unwrap();
    let quoted = HeaderName::from_lowercase(b"a\"b").unwrap();
    request.headers_mut().insert(quoted, HeaderValue::from_static("value"));
    let (answer, _) = client.send_request(request, true).unwrap();
    assert_eq!(timeout(HANGS, answer).await.unwrap().unwrap().status(), 503);
}
