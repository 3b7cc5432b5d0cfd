//! `reqwest::Client`: the types of requests and responses do not change.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use reattempt::{PeekBodyLayer, ReqwestExt};
use reattempt_faults::{End, Reply, Server};
use tower::Layer;

use super::support::retries;

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap()
}

fn cut() -> Reply {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n";
    Reply::raw(format!("{head}{}", "x".repeat(500))).end_with(End::Reset)
}

/// The response is reqwest's own, with its URL and length.
// BI-1, B-8, field 17
#[tokio::test]
async fn broken_body_is_requested_again() {
    let whole = Reply::default().header(CONTENT_TYPE, "application/json".parse().unwrap()).body(vec![b'7'; 2000]);
    let server = Server::http1([whole.clone(), cut(), whole]).await.unwrap();
    let client = client();
    let layered = retries().layer(PeekBodyLayer::new().layer(client.clone()));
    let url = server.url("/index.json?page=2#part");
    let bare = client.get(&url).send().await.unwrap();
    let response: reqwest::Response = client.get(&url).send_with(&layered).await.unwrap();
    assert_eq!((response.url(), response.content_length()), (bare.url(), Some(2000)));
    assert_eq!(response.bytes().await.unwrap(), vec![b'7'; 2000]);
}

/// The caller of three breaks gets the bytes and an error of reqwest's.
// B-8
#[tokio::test]
async fn last_break_is_reqwests_error() {
    let server = Server::http1([cut(), cut(), cut()]).await.unwrap();
    let client = client();
    let layered = retries().layer(PeekBodyLayer::new().layer(client.clone()));
    let mut response = client.get(server.url("/")).send_with(&layered).await.unwrap();
    let report = response.extensions().get::<reattempt::Report>().unwrap().to_string();
    assert!(report.contains("attempt 3") && report.contains("network: request or response body error"), "{report}");
    let mut length = 0;
    let error = loop {
        match response.chunk().await {
            Ok(chunk) => length += chunk.expect("an error").len(),
            Err(error) => break error,
        }
    };
    assert_eq!(length, 500);
    assert!(error.is_body() || error.is_decode(), "{error:?}");
}

/// A body that is not held is handed on as it is.
// BI-2
#[tokio::test]
async fn long_body_is_unchanged() {
    let content = Bytes::from(vec![b'x'; 2_000_000]);
    let server = Server::http1([Reply::default().body(content.clone())]).await.unwrap();
    let client = client();
    let layered = retries().layer(PeekBodyLayer::new().layer(client.clone()));
    let response = client.get(server.url("/film")).send_with(&layered).await.unwrap();
    assert_eq!((response.content_length(), response.bytes().await.unwrap()), (Some(2_000_000), content));
}
