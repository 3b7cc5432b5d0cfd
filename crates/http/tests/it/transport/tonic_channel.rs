//! Tests of transport errors from tonic's channel, before they are converted to a gRPC status.

use std::time::Duration;

use reattempt_core::Verdict;
use tonic::body::Body;
use tonic::client::GrpcService;
use tonic::transport::{Channel, Endpoint, Error as ChannelError};

use super::server::{read_http2_headers, read_on, refused, reset, serve, write_goaway};
use super::*;

fn endpoint(server: std::net::SocketAddr) -> Endpoint {
    Endpoint::from_shared(format!("http://{server}")).unwrap()
}

async fn call(mut channel: Channel, body: Body) -> Result<(), ChannelError> {
    std::future::poll_fn(|cx| channel.poll_ready(cx)).await?;
    let request = Request::builder().method(Method::POST).uri("/service/method").body(body).unwrap();
    channel.call(request).await.map(drop)
}

#[tokio::test]
async fn connection_refused() {
    let channel = endpoint(refused().await).connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, NOT_CONNECTED);
    assert_verdict(endpoint(refused().await).connect().await, NOT_CONNECTED);
}

#[tokio::test]
async fn no_such_name() {
    let channel = Endpoint::from_static("http://reattempt.invalid").connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, NOT_CONNECTED);
}

// TN-10
#[tokio::test]
async fn refused_stream() {
    let server = serve(async |connection| {
        let mut connection = h2::server::handshake(connection).await.unwrap();
        while let Some(Ok((_, mut answer))) = connection.accept().await {
            answer.send_reset(h2::Reason::REFUSED_STREAM);
        }
    });
    let channel = endpoint(server.await).connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, REFUSED);
}

// TN-10
#[tokio::test]
async fn goaway_that_leaves_the_stream_out() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        write_goaway(&mut connection, 0, h2::Reason::NO_ERROR.into()).await;
    });
    let channel = endpoint(server.await).connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, REFUSED);
}

// trap 24
#[tokio::test]
async fn cancel_is_no_proof() {
    let server = serve(async |connection| {
        let mut connection = h2::server::handshake(connection).await.unwrap();
        while let Some(Ok((_, mut answer))) = connection.accept().await {
            answer.send_reset(h2::Reason::CANCEL);
        }
    });
    let channel = endpoint(server.await).connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, LOST);
}

#[tokio::test]
async fn reset_after_the_request_was_read() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        reset(connection);
    });
    let channel = endpoint(server.await).connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, LOST);
}

#[tokio::test]
async fn no_answer_in_time() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        read_on(&mut connection).await;
    });
    let channel = endpoint(server.await).timeout(Duration::from_millis(20)).connect_lazy();
    assert_verdict(call(channel, Body::empty()).await, TIMED_OUT);
}

#[tokio::test]
async fn the_callers_own_body_fails() {
    let server = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        read_on(&mut connection).await;
    });
    let channel = endpoint(server.await).connect_lazy();
    assert_verdict(call(channel, Body::new(breaks_off())).await, Verdict::Permanent);
}
