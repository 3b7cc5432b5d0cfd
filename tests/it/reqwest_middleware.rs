//! The middleware for reqwest-middleware on the wire: transport errors, timeouts, streams.

use std::time::Duration;

use reattempt_faults::{End, Reply};

use crate::support::{Server, chunked, quick, status};
use futures_util::stream;
use reattempt::Report;
use reattempt_reqwest_middleware::{CallError, ReattemptMiddleware};
use reqwest::Body;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use tokio::net::TcpSocket;

fn client() -> ClientWithMiddleware {
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy();
    ClientBuilder::new(http.build().unwrap()).with(ReattemptMiddleware::new(quick())).build()
}

#[tokio::test]
async fn incomplete_response_is_retried() {
    // A response that is cut off, and a connection that is closed without one.
    let cut_off = Reply::raw("HTTP/1.1").end_with(End::Close);
    let closed = Reply::default().cut(0).end_with(End::Close);
    let server = Server::http1([cut_off, closed]).await;
    let response = client().get(server.url("/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.extensions().get::<Report>().unwrap().retries(), 2);
    assert_eq!(server.seen().len(), 3);
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
