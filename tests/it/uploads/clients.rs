//! Uploads through reqwest, reqwest-middleware and tonic, and as a multipart form.

use bytes::Bytes;
use http_body_util::Full;
use reattempt::body::UploadBody;
use reattempt::{CallOptions, ReqwestExt, RetryLayer, RetryPolicy};
use reattempt_faults::{Reply, Script};
use reattempt_reqwest_middleware::ReattemptMiddleware;
use tonic::codec::{Codec, EncodeBody};
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;
use tower::Layer;

use super::TestFile;
use crate::support::echo::Text;
use crate::support::echo::echo_client::EchoClient;
use crate::support::{Server, quick, status};

fn http() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap()
}

// field 30
#[tokio::test]
async fn reqwest_upload_is_opened_again() {
    let file = TestFile::new(1_000_000);
    let server = Server::http1([status(503), Reply::reset()]).await;
    let client = RetryLayer::new(quick()).layer(http());
    let body = reqwest::Body::wrap(file.upload().await);
    let response = http().put(server.url("/")).body(body).send_with(&client).await.unwrap();
    assert_eq!(response.status(), 200);
    file.assert_arrived(&server.seen(), 3);
}

#[tokio::test]
async fn middleware_upload_is_opened_again() {
    let file = TestFile::new(1_000_000);
    let server = Server::http1([status(503)]).await;
    let client = reqwest_middleware::ClientBuilder::new(http()).with(ReattemptMiddleware::new(quick())).build();
    let body = reqwest::Body::wrap(file.upload().await);
    let response = client.put(server.url("/")).body(body).send().await.unwrap();
    assert_eq!(response.status(), 200);
    file.assert_arrived(&server.seen(), 2);
}

/// reqwest follows 307 and 308 only with a body in memory. The caller gets the redirect, and sends a clone.
#[tokio::test]
async fn reqwest_redirect_is_left_to_caller() {
    let file = TestFile::new(1_000_000);
    let moved = status(307).header(http::header::LOCATION, http::HeaderValue::from_static("/moved"));
    let server = Server::http1([moved]).await;
    let client = RetryLayer::new(quick()).layer(http());
    let upload = file.upload().await;
    let put = |url: reqwest::Url| http().put(url).body(reqwest::Body::wrap(upload.clone())).send_with(&client);
    let moved = put(server.url("/").parse().unwrap()).await.unwrap();
    assert_eq!(moved.status(), 307);
    let to = moved.url().join(moved.headers()["location"].to_str().unwrap()).unwrap();
    assert_eq!(put(to).await.unwrap().status(), 200);
    file.assert_arrived(&server.seen(), 2);
}

/// The form of the guide: its boundary is the same in each attempt.
#[tokio::test]
async fn multipart_form_is_opened_again() {
    let file = TestFile::new(1_000_000);
    let server = Server::http1([status(503)]).await;
    let client = RetryLayer::new(quick()).layer(http());
    let boundary = "reattempt-7MA4YWxkTrZu0gW";
    let text = |text: String| UploadBody::cloned(Full::<Bytes>::from(text));
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"title\"\r\n\r\nA book\r\n\
         --{boundary}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"book.pdf\"\r\n\
         Content-Type: application/pdf\r\n\r\n"
    );
    let tail = format!("\r\n--{boundary}--\r\n");
    let whole = [head.as_bytes(), &file.content, tail.as_bytes()].concat();
    let form = UploadBody::joined([text(head), file.upload().await, text(tail)]);
    let response = http()
        .put(server.url("/"))
        .header("content-type", format!("multipart/form-data; boundary={boundary}"))
        .body(reqwest::Body::wrap(form))
        .send_with(&client)
        .await
        .unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));
    for arrival in server.seen() {
        assert!(arrival.whole && arrival.body == whole);
        assert_eq!(arrival.headers["content-length"], whole.len().to_string());
    }
}

fn messages() -> impl futures_util::Stream<Item = Text> + Send + 'static {
    futures_util::stream::iter((0..200).map(|number| Text::new(format!("{number} {}", "x".repeat(5_000)))))
}

/// The stream is longer than the limit of a gRPC policy, 256 KiB.
// field 30
#[tokio::test]
async fn tonic_stream_is_opened_again() {
    let answer = || Reply::grpc(b"\x0a\x02ok");
    let script = Script::new([Reply::grpc_error(14), answer()]);
    let server = reattempt_faults::Server::http2(script).await.unwrap();
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect_lazy();
    let client = RetryLayer::new(RetryPolicy::grpc()).layer(channel);
    let mut request = tonic::Request::new(messages());
    request.extensions_mut().insert(CallOptions::new().repeatable(true));
    request.extensions_mut().insert(UploadBody::with_unknown_length(|| async {
        let encoder = ProstCodec::<Text, Text>::default().encoder();
        let messages = futures_util::StreamExt::map(messages(), Ok);
        Ok::<_, tonic::Status>(EncodeBody::new_client(encoder, messages, None, None))
    }));
    let text = EchoClient::new(client).gather(request).await.unwrap().into_inner();
    assert_eq!(text, Text::new("ok"));
    let arrivals = server.ledger().arrivals();
    assert_eq!(arrivals.len(), 2);
    assert!(arrivals[1].whole && arrivals[1].body.len() > 1_000_000);
    server.ledger().bodies_intact();
}
