//! Streams that are reset or lost under a tonic client that is built without tonic's feature `server`.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, its helpers too"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use h2::Reason;
use http::Response;
use reattempt::RetryPolicy;
use reattempt::grpc::Grpc;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::Endpoint;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::Layer;

/// The server's action on a request.
#[derive(Clone, Copy)]
enum Act {
    Reset(Reason),
    /// Closes the connection.
    Close,
    /// Answers with this status in a single block of headers.
    Status(&'static str),
}

/// A server that acts by a script whose last act it repeats.
struct Server {
    url: String,
    count: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Server {
    async fn start(script: Vec<Act>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(mut connection) = h2::server::handshake(stream).await else { continue };
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    let arrival = counted.fetch_add(1, Ordering::SeqCst);
                    match script.get(arrival).or(script.last()).unwrap() {
                        Act::Reset(reason) => respond.send_reset(*reason),
                        Act::Close => break,
                        Act::Status(status) => {
                            let answer = Response::builder()
                                .header("content-type", "application/grpc")
                                .header("grpc-status", *status);
                            respond.send_response(answer.body(()).unwrap(), true).unwrap();
                        }
                    }
                }
            }
        });
        Self { url, count, task }
    }

    /// Returns the code that a caller gets, and the number of requests that came.
    async fn call(&self, policy: RetryPolicy<Grpc>) -> (Code, usize) {
        let channel = Endpoint::from_shared(self.url.clone()).unwrap().connect_lazy();
        let mut client = HealthClient::new(policy.layer(channel));
        let call = client.check(HealthCheckRequest::default());
        let answer = timeout(Duration::from_secs(30), call).await.expect("an end within 30 s");
        (answer.unwrap_err().code(), self.count.load(Ordering::SeqCst))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A policy without retries and replacements.
fn once() -> RetryPolicy<Grpc> {
    RetryPolicy::with(Grpc::new().transparent_retries(false)).max_attempts(1)
}

// OUT-2, TN-10
#[tokio::test]
async fn caller_gets_code_of_reset_or_loss() {
    for (act, code) in [
        (Act::Reset(Reason::REFUSED_STREAM), Code::Unavailable),
        (Act::Reset(Reason::CANCEL), Code::Cancelled),
        (Act::Reset(Reason::ENHANCE_YOUR_CALM), Code::ResourceExhausted),
        (Act::Reset(Reason::INADEQUATE_SECURITY), Code::PermissionDenied),
        (Act::Reset(Reason::PROTOCOL_ERROR), Code::Internal),
        (Act::Close, Code::Unavailable),
    ] {
        let server = Server::start(vec![act]).await;
        assert_eq!(server.call(once()).await, (code, 1));
    }
}

// TR-2, TN-10
#[tokio::test]
async fn refused_stream_is_replaced_once() {
    let refused = Act::Reset(Reason::REFUSED_STREAM);
    let server = Server::start(vec![refused, Act::Status("5")]).await;
    let policy = RetryPolicy::grpc().max_attempts(1);
    assert_eq!(server.call(policy.clone()).await, (Code::NotFound, 2));
    let server = Server::start(vec![refused]).await;
    assert_eq!(server.call(policy).await, (Code::Unavailable, 2));
}
