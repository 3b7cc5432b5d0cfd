//! REFUSED_STREAM after the upload, which is proof by RFC 9113 unless the policy disables that.

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::grpc::Grpc;
use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
use reattempt::observe::Proof;
use reattempt::schedule::Constant;
use reattempt::{Http, Report, RetryLayer, RetryPolicy};
use reattempt_faults::{Reply, Server};
use tonic::transport::{Channel, Endpoint};
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
    let _ = RetryLayer::new(policy).layer(channel(&server)).oneshot(grpc_request()).await;
    server.ledger().arrivals().len()
}

fn channel(server: &Server) -> Channel {
    Endpoint::from_shared(server.url("")).unwrap().connect_lazy()
}

fn grpc_request() -> Request<tonic::body::Body> {
    let body = tonic::body::Body::new(Full::new(Bytes::from_static(&[0; 5])));
    Request::post("/service/method").body(body).unwrap()
}

/// With `refused_stream_is_proof(false)` a refused stream is neither replaced nor retried, unless the call may be
/// repeated. `transparent_retries(false)` only turns off the replacement.
// TR-8, C-2, C-12, trap 24
#[tokio::test]
async fn grpc_refused_stream_is_no_proof_if_set() {
    let policy = || RetryPolicy::grpc().backoff(Constant::immediate());
    for (replaced, proof, repeatable, arrivals) in [
        (true, true, false, 2),
        (false, true, false, 2),
        (true, false, false, 1),
        (false, false, false, 1),
        (true, false, true, 2),
        (false, false, true, 2),
    ] {
        let policy = policy().transparent_retries(replaced).refused_stream_is_proof(proof).repeatable(repeatable);
        assert_eq!(grpc_calls(policy.clone()).await, arrivals, "{replaced} {proof} {repeatable}");
        // Without retries, only the replacement is left.
        let replacements = if replaced && proof { 2 } else { 1 };
        assert_eq!(grpc_calls(policy.max_attempts(1)).await, replacements, "{replaced} {proof} {repeatable}");
    }
}

/// A service config without a policy for the method replaces a refused stream, unless it is no proof.
// CALL-2, C-12, trap 24
#[tokio::test]
async fn config_replaces_only_with_proof() {
    for (proof, arrivals) in [(true, 2), (false, 1)] {
        let server = refusing().await;
        let layer = ServiceConfigLayer::new(ServiceConfig::default());
        let layer = layer.protocol(|grpc| grpc.refused_stream_is_proof(proof));
        let _ = layer.layer(channel(&server)).oneshot(grpc_request()).await;
        assert_eq!(server.ledger().arrivals().len(), arrivals, "{proof}");
    }
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

/// A report says which attempts were repeated only because of a refused stream. A PUT may be repeated anyway.
// trap 24
#[tokio::test]
async fn report_names_repeat_by_refused_stream() {
    for (method, expected) in [("POST", Some(Proof::RefusedStream)), ("PUT", None)] {
        let server = refusing().await;
        let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
        let request = Request::builder().method(method).uri(server.url("/"));
        let request = request.body(Full::new(Bytes::from("pay"))).unwrap();
        let response = RetryLayer::new(quick()).layer(client).oneshot(request).await.unwrap();
        let report = Report::of(&response).unwrap();
        assert_eq!(report.attempts()[0].repeated_by, expected, "{report}");
        let words = report.to_string().contains("repeated only because the server refused the stream");
        assert_eq!(words, expected.is_some(), "{report}");
    }
}
