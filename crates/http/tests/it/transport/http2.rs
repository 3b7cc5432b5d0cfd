//! Tests with hyper-util's client over HTTP/2: the verdict depends on which side ended the stream.

use std::time::Duration;

use h2::Reason;
use hyper::client::conn;
use hyper_util::rt::TokioIo;
use reattempt_core::Verdict;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::server::{DATA, HEADERS, read_http2_headers, read_on, reset, serve, write_frame, write_goaway};
use super::*;

async fn call(server: std::net::SocketAddr) -> Result<(), hyper_util::client::legacy::Error> {
    http2_client().request(get(&format!("http://{server}/"))).await.map(drop)
}

/// A server on h2 that resets every stream.
async fn resets_streams(reason: Reason) -> std::net::SocketAddr {
    serve(move |connection| async move {
        let mut connection = h2::server::handshake(connection).await.unwrap();
        while let Some(Ok((_, mut answer))) = connection.accept().await {
            answer.send_reset(reason);
        }
    })
    .await
}

/// A server that sends GOAWAY once it has the request, as stream 1, and then closes the connection.
async fn goes_away(last_stream: u32, reason: Reason) -> std::net::SocketAddr {
    serve(move |mut connection| async move {
        read_http2_headers(&mut connection).await;
        write_goaway(&mut connection, last_stream, reason.into()).await;
    })
    .await
}

#[tokio::test]
async fn refused_stream() {
    assert_verdict(call(resets_streams(Reason::REFUSED_STREAM).await).await, REFUSED);
}

// trap 24
#[tokio::test]
async fn other_resets_are_no_proof() {
    for reason in [Reason::CANCEL, Reason::INTERNAL_ERROR, Reason::ENHANCE_YOUR_CALM] {
        let result = call(resets_streams(reason).await).await;
        let told = result.as_ref().err().and_then(|error| reset_reason(error));
        assert_eq!(told, Some(reason.into()));
        assert_verdict(result, LOST);
    }
    // The code alone is not proof either, without a server that sent it.
    assert_eq!(verdict_of_error(&h2::Error::from(Reason::REFUSED_STREAM)), Some(LOST));
}

#[tokio::test]
async fn goaway_that_leaves_the_stream_out() {
    for reason in [Reason::NO_ERROR, Reason::ENHANCE_YOUR_CALM, Reason::INTERNAL_ERROR] {
        let result = call(goes_away(0, reason).await).await;
        let told = result.as_ref().err().and_then(|error| reset_reason(error));
        assert_eq!(told, None, "no stream was reset");
        assert_verdict(result, REFUSED);
    }
}

// trap 24
#[tokio::test]
async fn goaway_that_includes_stream_is_no_proof() {
    for reason in [Reason::NO_ERROR, Reason::INTERNAL_ERROR] {
        assert_verdict(call(goes_away(1, reason).await).await, LOST);
    }
}

/// A data frame for stream 0 breaks the connection's rules, so our own side sends GOAWAY.
// trap 24
#[tokio::test]
async fn own_goaway_is_no_proof() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        write_frame(&mut connection, DATA, 0, 0, b"?").await;
        read_on(&mut connection).await;
    });
    let error = call(server.await).await.unwrap_err();
    let inner = h2_error(&error);
    assert!(inner.is_go_away() && inner.is_library(), "{error:?}");
    assert_eq!(verdict_of_error(&error), Some(LOST));
    assert_eq!(reset_reason(&error), None);
}

/// A head with a field of connections breaks the stream's rules, so our own side sends RST_STREAM.
// trap 24
#[tokio::test]
async fn own_reset_is_no_proof() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        let (end_of_headers, literal) = (4, b"\x88\x00\x0aconnection\x05close");
        write_frame(&mut connection, HEADERS, end_of_headers, 1, literal).await;
        read_on(&mut connection).await;
    });
    let error = call(server.await).await.unwrap_err();
    let inner = h2_error(&error);
    assert!(inner.is_reset() && inner.is_library(), "{error:?}");
    assert_eq!(verdict_of_error(&error), Some(LOST));
    assert_eq!(reset_reason(&error), None);
}

#[tokio::test]
async fn connection_lost_after_request_was_read() {
    for orderly in [true, false] {
        let server = serve(move |mut connection| async move {
            read_http2_headers(&mut connection).await;
            if !orderly {
                reset(connection);
            }
        });
        assert_verdict(call(server.await).await, LOST);
    }
}

#[tokio::test]
async fn no_answer_to_a_keep_alive_ping() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        read_on(&mut connection).await;
    });
    let client = builder()
        .http2_only(true)
        .http2_keep_alive_interval(Duration::from_millis(20))
        .http2_keep_alive_timeout(Duration::from_millis(20))
        .build_http();
    let result = client.request(get(&format!("http://{}/", server.await))).await;
    assert_verdict(result, TIMED_OUT);
}

#[tokio::test]
async fn request_not_taken_by_dead_connection() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        reset(connection);
    });
    let io = TokioIo::new(TcpStream::connect(server.await).await.unwrap());
    let (mut sender, connection) = conn::http2::handshake::<_, _, Body>(TokioExecutor::new(), io).await.unwrap();
    let first = sender.send_request(get("http://localhost/"));
    let (first, _) = tokio::join!(first, connection);
    assert_verdict(first, LOST);

    let error = sender.send_request(get("http://localhost/")).await.unwrap_err();
    assert!(error.is_canceled(), "{error:?}");
    assert_not_dispatched(&error);
}

/// hyper reports this failure as a stream reset by the user of h2, which is hyper itself.
#[tokio::test]
async fn the_callers_own_body_fails() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        read_on(&mut connection).await;
    });
    let request = post_that_breaks_off(&format!("http://{}/", server.await));
    assert_verdict(http2_client().request(request).await, Verdict::Permanent);
}

fn h2_error(error: &hyper_util::client::legacy::Error) -> &h2::Error {
    let inner = error.source().expect("hyper's error").source().expect("h2's error");
    inner.downcast_ref().expect("h2's error")
}

/// The classification is the same as for HTTP/1.
// trap 24
#[tokio::test]
async fn answer_that_is_not_http_is_lost() {
    for answer in ["220 mail.example ESMTP\r\n\r\n", "HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let server = serve(move |mut connection| async move {
            read_http2_headers(&mut connection).await;
            connection.write_all(answer.as_bytes()).await.unwrap();
            read_on(&mut connection).await;
        });
        assert_verdict(call(server.await).await, LOST);
    }
}
