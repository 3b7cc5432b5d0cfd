//! Tests of the sizes of what an attempt sends and receives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use reattempt::RetryLayer;
use reattempt_grpc::Code;
use reattempt_testing_layers::grpc::{Lost, Step, policy, read, status, streaming, trailers_only};
use reattempt_testing_layers::metrics::{Reader, line};
use tonic::body::Body;
use tower::{ServiceBuilder, ServiceExt, service_fn};

const SENT: &str = "attempt.sent_total_compressed_message_size";
const RECEIVED: &str = "attempt.rcvd_total_compressed_message_size";

/// Returns two messages, of five and of three bytes.
fn two_messages() -> Request<Body> {
    let body = Full::new(Bytes::from_static(b"\0\0\0\0\x05hello\x01\0\0\0\x03you"));
    Request::post("http://one.example/service/method").body(Body::new(body)).unwrap()
}

// OBS-2
#[tokio::test(start_paused = true)]
async fn sizes_are_of_each_attempts_messages() {
    let reader = Reader::new();
    let refused = Arc::<AtomicBool>::default();
    let server = service_fn(move |request: Request<Body>| {
        let refused = refused.swap(true, Ordering::Relaxed);
        async move {
            if !refused {
                // Refused before anything is read.
                return Ok::<_, Lost>(trailers_only(Code::Unavailable));
            }
            let body = request.into_body().collect().await.unwrap().to_bytes();
            assert_eq!(body.len(), 18);
            let end = Step::Trailers(status(Code::Ok));
            Ok(streaming([Step::Data("\0\0\0\0\x08an"), Step::Data("swered"), end]))
        }
    });
    let layer = reader.metrics().around(RetryLayer::new(policy(1)));
    let client = ServiceBuilder::new().layer(layer).service(server);
    read(client.oneshot(two_messages()).await.unwrap()).await;
    assert_eq!(reader.of(SENT), [line("OK", 1, 8), line("UNAVAILABLE", 1, 0)]);
    assert_eq!(reader.of(RECEIVED), [line("OK", 1, 8), line("UNAVAILABLE", 1, 0)]);
}
