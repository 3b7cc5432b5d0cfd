//! REFUSED_STREAM after the upload, which is proof by RFC 9113 unless the policy disables that.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::grpc::Grpc;
use reattempt::schedule::Constant;
use reattempt::{Http, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tonic::transport::Endpoint;
use tower::{Layer, ServiceExt};

use crate::not_processed::support::quick;

/// Reads each request to its end, as a proxy with a working backend does, and refuses the first.
async fn refusing(requests: Arc<AtomicUsize>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut connection = h2::server::handshake(stream).await.unwrap();
        while let Some(Ok((request, mut answer))) = connection.accept().await {
            let number = requests.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut body = request.into_body();
                while let Some(data) = body.data().await {
                    let read = data.unwrap().len();
                    body.flow_control().release_capacity(read).unwrap();
                }
                match number {
                    0 => answer.send_reset(Reason::REFUSED_STREAM),
                    _ => drop(answer.send_response(Response::new(()), true).unwrap()),
                }
            });
        }
    });
    address
}

/// Returns the number of requests that arrive for one call, and `true` if the call succeeds.
async fn calls(policy: RetryPolicy<Http, Constant>, method: &str) -> (usize, bool) {
    let requests = Arc::new(AtomicUsize::new(0));
    let server = refusing(Arc::clone(&requests)).await;
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let request = Request::builder().method(method).uri(format!("http://{server}/"));
    let request = request.body(Full::new(Bytes::from("pay"))).unwrap();
    let result = RetryLayer::new(policy).layer(client).oneshot(request).await;
    (requests.load(Ordering::Relaxed), result.is_ok())
}

/// Returns the number of requests that arrive for one gRPC call.
async fn grpc_calls(policy: RetryPolicy<Grpc, Constant>) -> usize {
    let requests = Arc::new(AtomicUsize::new(0));
    let server = refusing(Arc::clone(&requests)).await;
    let channel = Endpoint::from_shared(format!("http://{server}")).unwrap().connect_lazy();
    let body = tonic::body::Body::new(Full::new(Bytes::from_static(&[0; 5])));
    let request = Request::post("/service/method").body(body).unwrap();
    let _ = RetryLayer::new(policy).layer(channel).oneshot(request).await;
    requests.load(Ordering::Relaxed)
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
