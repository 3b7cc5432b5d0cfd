//! REFUSED_STREAM after the upload, which is proof by RFC 9113 unless the policy disables that.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::grpc::Grpc;
use reattempt::schedule::Constant;
use reattempt::{Http, RetryLayer, RetryPolicy};
use reattempt_faults::{Reply, Server};
use tonic::transport::Endpoint;
use tower::{Layer, ServiceExt};

use crate::not_processed::support::quick;

/// Returns a server that reads each request to its end, as a proxy with a working backend does, and refuses the first.
async fn refusing() -> Server {
    Server::http2([Reply::refused_stream()]).await.unwrap()
}

/// Returns the number of requests that arrive for one call, and `true` if the call succeeds.
async fn calls(policy: RetryPolicy<Http, Constant>, method: &str) -> (usize, bool) {
    let server = refusing().await;
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let request = Request::builder().method(method).uri(server.url("/"));
    let request = request.body(Full::new(Bytes::from("pay"))).unwrap();
    let result = RetryLayer::new(policy).layer(client).oneshot(request).await;
    (server.ledger().arrivals().len(), result.is_ok())
}

/// Returns the number of requests that arrive for one gRPC call.
async fn grpc_calls(policy: RetryPolicy<Grpc, Constant>) -> usize {
    let server = refusing().await;
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect_lazy();
    let body = tonic::body::Body::new(Full::new(Bytes::from_static(&[0; 5])));
    let request = Request::post("/service/method").body(body).unwrap();
    let _ = RetryLayer::new(policy).layer(channel).oneshot(request).await;
    server.ledger().arrivals().len()
}

// trap 24
#[tokio::test]
async fn grpc_refused_stream_is_no_proof_if_set() {
    let policy = || RetryPolicy::grpc().backoff(Constant::immediate());
    assert_eq!(grpc_calls(policy()).await, 2);
    assert_eq!(grpc_calls(policy().protocol(|http| http.refused_stream_is_proof(false))).await, 1);
}

/// The body was polled by then, which is no sign of a redirect here.
#[tokio::test]
async fn refused_stream_is_proof() {
    assert_eq!(calls(quick(), "POST").await, (2, true));
}

/// A proxy refused a stream whose request its backend had carried out.
// trap 24
#[tokio::test]
async fn refused_stream_is_no_proof_if_so_set() {
    let doubting = || quick().protocol(|http| http.refused_stream_is_proof(false));
    assert_eq!(calls(doubting(), "POST").await, (1, false));
    assert_eq!(calls(doubting(), "PUT").await, (2, true));
}
