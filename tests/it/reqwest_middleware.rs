//! The middleware for reqwest-middleware on the wire: transport errors, timeouts, streams.

use std::time::Duration;

use reattempt_faults::Reply;

use crate::support::{Server, chunked, quick, status};
use futures_util::stream;
use reattempt::Report;
use reattempt_reqwest_middleware::{CallError, ReattemptMiddleware};
use reqwest::Body;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

fn client() -> ClientWithMiddleware {
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy();
    ClientBuilder::new(http.build().unwrap()).with(ReattemptMiddleware::new(quick())).build()
}

/// Starts a server that reads a request and writes these bytes, one text for each connection, and then closes it.
async fn raw(texts: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for text in texts {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0, "a request");
            stream.write_all(text.as_bytes()).await.unwrap();
        }
    });
    url
}

#[tokio::test]
async fn incomplete_response_is_retried() {
    const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    // A response that is cut off, and a connection that is closed without one.
    let url = raw(&["HTTP/1.1", "", WHOLE]).await;
    let response = client().get(url).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.extensions().get::<Report>().unwrap().retries(), 2);
}

#[tokio::test]
async fn reset_is_retried_for_a_get_only() {
    let server = Server::http1([Reply::reset(), status(200), Reply::reset()]).await;
    let response = client().get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let error = client().post(server.url("/")).body("once").send().await.unwrap_err();
    let call = CallError::of(&error).unwrap();
    assert!(call.reqwest().is_some_and(reqwest::Error::is_request), "{call:?}");
    assert_eq!(server.seen().len(), 3);
}

#[tokio::test]
async fn timeout_of_reqwest_limits_each_attempt() {
    // The first connection is accepted by the system alone, and never answered.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(8).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let sent = client().get(url).timeout(Duration::from_millis(20)).send().await;
    let error = sent.unwrap_err();
    let call = CallError::of(&error).unwrap();
    assert!(call.reqwest().is_some_and(reqwest::Error::is_timeout), "{call:?}");
    assert_eq!(call.report().unwrap().retries(), 2);
}

#[tokio::test]
async fn no_connection_is_retried() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    let error = client().get(url).send().await.unwrap_err();
    let call = CallError::of(&error).unwrap();
    assert!(call.reqwest().is_some_and(reqwest::Error::is_connect), "{call:?}");
    assert_eq!(call.report().unwrap().retries(), 2);
}

#[tokio::test]
async fn stream_arrives_whole_each_time() {
    let server = Server::http1([status(503), status(503)]).await;
    let pieces = stream::iter(["in ", "pieces"].map(Ok::<_, std::io::Error>));
    let body = Body::wrap_stream(pieces);
    let response = client().put(server.url("/")).body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(server.bodies(), ["in pieces"; 3]);
}

// trap 07
#[tokio::test]
async fn connection_of_refused_response_is_reused() {
    let page = chunked(503, "an error page");
    let server = Server::http1([page.clone(), page]).await;
    client().get(server.url("/")).send().await.unwrap();
    assert_eq!(server.seen().iter().map(|seen| seen.connection).collect::<Vec<_>>(), [1, 1, 1]);
}
