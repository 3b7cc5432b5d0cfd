//! Tests with hyper-util's client over HTTP/1.1, and with hyper's own connection if the client hides an error.

use hyper::client::conn;
use hyper_util::rt::TokioIo;
use reattempt_core::Verdict;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::server::{read_head, read_on, refused, reset, serve};
use super::*;

#[tokio::test]
async fn connection_refused() {
    let uri = format!("http://{}/", refused().await);
    assert_verdict(http1_client().request(get(&uri)).await, NOT_CONNECTED);
}

/// RFC 6761 §6.4: names under `.invalid` never resolve, with a network or without.
#[tokio::test]
async fn no_such_name() {
    let result = http1_client().request(get("http://reattempt.invalid/")).await;
    assert_verdict(result, NOT_CONNECTED);
}

// trap 24
#[tokio::test]
async fn reset_before_request_is_read_is_no_proof() {
    let server = serve(async |connection| {
        connection.peek(&mut [0]).await.unwrap();
        reset(connection);
    });
    let uri = format!("http://{}/", server.await);
    assert_verdict(http1_client().request(get(&uri)).await, LOST);
}

// trap 24
#[tokio::test]
async fn reset_after_request_was_read_is_no_proof() {
    let server = serve(async |mut connection| {
        read_head(&mut connection).await;
        reset(connection);
    });
    let uri = format!("http://{}/", server.await);
    assert_verdict(http1_client().request(get(&uri)).await, LOST);
}

// trap 24
#[tokio::test]
async fn incomplete_message_is_no_proof() {
    for sent in ["", "HTTP/1.1 200 OK\r\ncontent-le"] {
        let server = serve(move |mut connection| async move {
            read_head(&mut connection).await;
            connection.write_all(sent.as_bytes()).await.unwrap();
        });
        let uri = format!("http://{}/", server.await);
        let error = http1_client().request(get(&uri)).await.unwrap_err();
        let inner = error.source().unwrap().downcast_ref::<hyper::Error>().unwrap();
        assert!(inner.is_incomplete_message(), "{error:?}");
        assert_eq!(verdict_of_error(&error), Some(LOST), "{sent:?}");
    }
}

#[tokio::test]
async fn request_not_taken_by_dead_connection() {
    let server = serve(async |mut connection| connection.shutdown().await.unwrap());
    let io = TokioIo::new(TcpStream::connect(server.await).await.unwrap());
    let (mut sender, connection) = conn::http1::handshake::<_, Body>(io).await.unwrap();
    connection.await.expect_err("the server hung up");

    let error = sender.send_request(get("/")).await.unwrap_err();
    assert!(error.is_canceled(), "{error:?}");
    assert_not_dispatched(&error);

    let error = sender.ready().await.unwrap_err();
    assert!(error.is_closed(), "{error:?}");
    assert_not_dispatched(&error);
}

/// The connection is closed while idle, and the client notices only when the request is already queued.
#[tokio::test]
async fn request_meets_connection_closed_idle() {
    let (client, server) = tokio::io::duplex(64);
    let io = TokioIo::new(client);
    let (mut sender, connection) = conn::http1::handshake::<_, Body>(io).await.unwrap();
    drop(server);
    let (result, _) = tokio::join!(sender.send_request(get("/")), connection);
    let error = result.unwrap_err();
    assert!(error.is_canceled(), "{error:?}");
    assert_not_dispatched(&error);
}

// trap 24
#[tokio::test]
async fn closing_reused_connection_is_no_proof() {
    let server = serve(async |mut connection| {
        read_head(&mut connection).await;
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        read_head(&mut connection).await;
    });
    let uri = format!("http://{}/", server.await);
    let client = http1_client();
    client.request(get(&uri)).await.unwrap();
    assert_verdict(client.request(get(&uri)).await, LOST);
}

#[tokio::test]
async fn the_callers_own_body_fails() {
    let uri = format!("http://{}/", serve(async |mut connection| read_on(&mut connection).await).await);
    let result = http1_client().request(post_that_breaks_off(&uri)).await;
    assert_verdict(result, Verdict::Permanent);
}

#[tokio::test]
async fn scheme_that_the_connector_does_not_speak() {
    let uri = format!("https://{}/", refused().await);
    assert_verdict(http1_client().request(get(&uri)).await, Verdict::Permanent);
}

#[tokio::test]
async fn uri_without_a_host() {
    assert_verdict(http1_client().request(get("/")).await, None);
}

const GREETING: &[u8] = b"220 mail.example ESMTP\r\n\r\n";

/// Such a response may come from a server that has already processed the request.
// trap 24
#[tokio::test]
async fn answer_that_is_not_http_is_lost() {
    for answer in [GREETING, b"\0\0\0\x04\0\0\0\0\0\r\n\r\n", b"HTTP/1.1 2000 OK\r\n\r\n"] {
        let server = serve(move |mut connection| async move {
            read_head(&mut connection).await;
            connection.write_all(answer).await.unwrap();
            read_on(&mut connection).await;
        });
        let uri = format!("http://{}/", server.await);
        assert_verdict(http1_client().request(get(&uri)).await, LOST);
    }
}

/// A response head beyond the client's limit counts as a lost connection.
// trap 24
#[tokio::test]
async fn answer_that_is_too_long_is_lost() {
    let server = serve(async |mut connection| {
        read_head(&mut connection).await;
        let head = format!("HTTP/1.1 200 OK\r\na: {}", "a".repeat(1024 * 1024));
        let _ = connection.write_all(head.as_bytes()).await;
        read_on(&mut connection).await;
    });
    let uri = format!("http://{}/", server.await);
    assert_verdict(http1_client().request(get(&uri)).await, LOST);
}

/// The server sends data first, as in other protocols. If the client reads it before it has a request, no request was
/// sent; otherwise the data is a response that is not HTTP.
// trap 45
#[tokio::test]
async fn greeting_that_is_not_http_is_a_failure() {
    let server = serve(async |mut connection| {
        connection.write_all(GREETING).await.unwrap();
        read_on(&mut connection).await;
    });
    let uri = format!("http://{}/", server.await);
    for _ in 0..20 {
        let error = http1_client().request(get(&uri)).await.unwrap_err();
        let verdict = verdict_of_error(&error);
        assert!(matches!(verdict, Some(LOST | NOT_CONNECTED)), "{verdict:?} of {error:?}");
    }
}
