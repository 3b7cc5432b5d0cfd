//! A generated tonic client over several real servers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reattempt::endpoints::Endpoints;
use reattempt::schedule::Constant;
use reattempt::{RetryLayer, RetryPolicy};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};
use tower::Layer;

/// A health service, and the number of calls that it has answered.
struct Health {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Health {
    async fn start(fails: Option<Status>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::<AtomicUsize>::default();
        let counted = Arc::clone(&calls);
        let interceptor = InterceptorLayer::new(move |call: tonic::Request<()>| {
            counted.fetch_add(1, Ordering::Relaxed);
            fails.clone().map_or(Ok(call), Err)
        });
        let health = HealthService::from_health_reporter(HealthReporter::new());
        let server = tonic::transport::Server::builder()
            .layer(interceptor)
            .add_service(HealthServer::new(health))
            .serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async move { server.await.unwrap() });
        Self { address, calls, task }
    }

    fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }
}

impl Drop for Health {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

/// A generated client over a channel for each address. A dead one and one that is unavailable cost no call. A lazy
/// channel reports ready while its server is dead (grpc-rust#2839).
#[tokio::test]
async fn generated_client_uses_each_channel() {
    let wells = [Health::start(None).await, Health::start(None).await];
    let ill = Health::start(Some(Status::unavailable("not now"))).await;
    // A bound socket that does not listen keeps the port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let dead = socket.local_addr().unwrap();
    let addresses = [wells[0].address, wells[1].address, ill.address, dead];
    let balanced = Endpoints::list(addresses).unwrap().connect(channel).grpc();
    let handle = balanced.endpoints();
    let policy = RetryPolicy::grpc().repeatable(true).backoff(Constant::new(Duration::from_millis(1))).max_attempts(4);
    let client = RetryLayer::new(policy).layer(balanced);
    let mut health = HealthClient::new(client);
    for _ in 0..40 {
        let answer = health.check(HealthCheckRequest { service: String::new() }).await.unwrap();
        assert_eq!(answer.into_inner().status, 1);
    }
    assert_eq!(wells.each_ref().map(Health::calls).into_iter().sum::<usize>(), 40);
    assert!(wells.iter().all(|well| well.calls() > 5));
    assert!((1..=6).contains(&ill.calls()), "{}", ill.calls());
    let view = handle.view();
    assert!(view[2].failing > 0.0 && view[3].failing > 0.0, "{view:?}");
    assert!(view.iter().all(|view| view.in_flight == 0), "{view:?}");
}
