//! Tests of requests and responses whose bodies are not resumed.

use http::Request;
use reattempt::CallOptions;
use tower::ServiceExt;

use super::support::{Answer, LENGTH, Server, assert_broken, client, get, read};

/// Sends a request whose response breaks, and returns the number of requests that arrived.
async fn sent(request: Request<String>, answer: Answer) -> usize {
    let server = Server::new([answer, Answer::rest(1, 400, LENGTH)]);
    let read = read(client(&server).oneshot(request).await.unwrap().into_body()).await;
    assert_eq!(read.error.is_none(), server.seen().len() == 2);
    if read.error.is_some() {
        assert_broken(&read, 1, 400);
    }
    server.seen().len()
}

#[tokio::test(start_paused = true)]
async fn only_get_without_terms_is_resumed() {
    let with = |change: fn(&mut Request<String>)| {
        let mut request = get();
        change(&mut request);
        request
    };
    let header = |name: &'static str, value: &'static str| {
        let mut request = get();
        request.headers_mut().insert(name, value.parse().unwrap());
        request
    };
    let rows = [
        (get(), 2),
        (header("accept", "*/*"), 2),
        // The server ignores the range.
        (header("range", "bytes=0-"), 2),
        (header("range", "bytes=0-1,4-5"), 1),
        (header("range", "lines=0-1"), 1),
        (header("if-range", "\"1\""), 1),
        (header("if-match", "\"1\""), 1),
        (header("if-none-match", "\"2\""), 1),
        (header("if-modified-since", "Thu, 26 Nov 2026 12:00:00 GMT"), 1),
        (header("if-unmodified-since", "Thu, 26 Nov 2026 12:00:00 GMT"), 1),
        (header("upgrade", "websocket"), 1),
        (with(|request| *request.method_mut() = http::Method::HEAD), 1),
        (with(|request| *request.method_mut() = http::Method::POST), 1),
        (with(|request| *request.body_mut() = "a body".to_owned()), 1),
        (with(|request| drop(request.extensions_mut().insert(CallOptions::new().never_retry()))), 1),
        (with(|request| drop(request.extensions_mut().insert(CallOptions::new().max_attempts(1)))), 1),
        (with(|request| drop(request.extensions_mut().insert(CallOptions::new().repeatable(false)))), 1),
    ];
    for (request, expected) in rows {
        let text = format!("{request:?}");
        assert_eq!(sent(request, Answer::whole(1, 400)).await, expected, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_whole_known_response_is_resumed() {
    let whole = || Answer::whole(1, 400);
    let partial = Answer { status: 206, ..whole() }.with("content-range", "bytes 0-999/1000");
    let rows = [
        ("a strong tag", whole(), 2),
        ("an exact body", whole().exact(1000), 2),
        ("a weak tag", whole().with("etag", "W/\"1\""), 1),
        ("no tag", whole().with("etag", ""), 1),
        ("no length, as after a decoder", whole().with("content-length", ""), 1),
        ("a body of another length", whole().exact(999), 1),
        ("an encoding", whole().with("content-encoding", "gzip"), 1),
        ("no ranges", whole().with("accept-ranges", "none"), 1),
        ("206", partial, 1),
        ("203", Answer { status: 203, ..whole() }, 1),
        ("404", Answer { status: 404, ..whole() }, 1),
        ("503", Answer { status: 503, ..whole() }, 1),
    ];
    for (name, answer, expected) in rows {
        assert_eq!(sent(get(), answer).await, expected, "{name}");
    }
}

/// A response without content has nothing to resume, whatever its head states.
#[tokio::test(start_paused = true)]
async fn response_without_content_is_not_resumed() {
    for status in [204, 304] {
        let answer = Answer::status(status).with("etag", "\"1\"").with("content-length", 1000);
        let server = Server::new([answer]);
        let read = read(client(&server).oneshot(get()).await.unwrap().into_body()).await;
        assert!(read.error.is_none() && read.data.is_empty());
        assert_eq!(server.seen().len(), 1);
    }
    let server = Server::new([Answer::status(200).with("etag", "\"1\"").with("content-length", 0)]);
    let read = read(client(&server).oneshot(get()).await.unwrap().into_body()).await;
    assert!(read.error.is_none() && read.data.is_empty());
}
