//! Two storms of the laboratory over real sockets: hyper's client under the default policy, and a
//! server of finite capacity.
//!
//! Only counts are asserted, and each follows from the budget's bounds. No result depends on the
//! speed of the machine.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::budget::Budget;
use reattempt::schedule::Constant;
use reattempt::{ReplayBody, RetryBudget, RetryLayer, RetryPolicy};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tower::{ServiceBuilder, ServiceExt};

/// A call or a wait that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);

/// A server of finite capacity. When it is dropped, it stops with all its connections.
struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

struct Shared {
    /// Free places for requests that are queued or processed. Further requests are refused at once.
    places: Semaphore,
    workers: Semaphore,
    /// `false` while the server stalls: it queues requests and answers none.
    answers: watch::Sender<bool>,
    /// Each request whose number is a multiple of this is refused; 0 for none.
    refused: AtomicU32,
    arrived: AtomicU32,
}

impl Server {
    async fn start(places: usize) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            places: Semaphore::new(places),
            workers: Semaphore::new(4),
            answers: watch::Sender::new(true),
            refused: AtomicU32::new(0),
            arrived: AtomicU32::new(0),
        });
        let mut task = JoinSet::new();
        let of_task = Arc::clone(&shared);
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let shared = Arc::clone(&of_task);
                let service = service_fn(move |_: Request<Incoming>| respond(Arc::clone(&shared)));
                connections.spawn(async move {
                    // A client that no longer waits closes its connection.
                    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
                });
            }
        });
        Self { address, shared, _task: task }
    }
}

/// Processes an accepted request, even if its client has stopped waiting.
async fn respond(shared: Arc<Shared>) -> Result<Response<Empty<Bytes>>, Infallible> {
    let number = shared.arrived.fetch_add(1, Ordering::Relaxed) + 1;
    let every = shared.refused.load(Ordering::Relaxed);
    let status = if every > 0 && number.is_multiple_of(every) {
        StatusCode::SERVICE_UNAVAILABLE
    } else {
        tokio::spawn(work(shared)).await.unwrap()
    };
    Ok(Response::builder().status(status).body(Empty::new()).unwrap())
}

async fn work(shared: Arc<Shared>) -> StatusCode {
    let Ok(_place) = shared.places.try_acquire() else {
        return StatusCode::SERVICE_UNAVAILABLE;
    };
    shared.answers.subscribe().wait_for(|answers| *answers).await.unwrap();
    let _worker = shared.workers.acquire().await.unwrap();
    tokio::task::yield_now().await;
    StatusCode::OK
}

/// A client with its own budget, which counts its attempts.
#[derive(Clone)]
struct Caller {
    address: SocketAddr,
    budget: RetryBudget,
    client: Client<HttpConnector, ReplayBody<Empty<Bytes>>>,
    /// The limit on one attempt, short while the server stalls.
    timeout: Duration,
    sent: Arc<AtomicU32>,
}

impl Caller {
    fn new(server: &Server, budget: RetryBudget, timeout: Duration) -> Self {
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self { address: server.address, budget, client, timeout, sent: Arc::default() }
    }

    /// Makes one call. Returns `true` if it succeeds.
    async fn call(&self) -> bool {
        let policy = RetryPolicy::http()
            .backoff(Constant::new(Duration::from_millis(1)))
            .budget(self.budget.clone())
            .attempt_timeout(self.timeout);
        let sent = Arc::clone(&self.sent);
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy))
            .map_request(move |request| {
                sent.fetch_add(1, Ordering::Relaxed);
                request
            })
            .service(self.client.clone());
        let request = Request::get(format!("http://{}/", self.address)).body(Empty::new()).unwrap();
        let response = tokio::time::timeout(HANGS, client.oneshot(request)).await.unwrap();
        response.is_ok_and(|response| response.status() == StatusCode::OK)
    }

    /// Calls until the server has recovered. Returns the calls and the successes.
    async fn recover(&self) -> (u32, u32) {
        let (mut calls, mut good) = (0, 0);
        let recovered = async {
            loop {
                calls += 1;
                good += u32::from(self.call().await);
                if good > 0 && self.budget.is_full() {
                    break;
                }
            }
        };
        tokio::time::timeout(HANGS, recovered).await.unwrap();
        (calls, good)
    }

    fn sent(&self) -> u32 {
        self.sent.swap(0, Ordering::Relaxed)
    }
}

/// Lets quiet clients call a stalled server, one call after another. Returns the attempts of each
/// client.
async fn stall(budget: fn() -> RetryBudget) -> Vec<u32> {
    let server = Server::start(30).await;
    let mut clients = JoinSet::new();
    let callers: Vec<_> = (0..20).map(|_| Caller::new(&server, budget(), Duration::from_millis(150))).collect();
    for caller in &callers {
        caller.recover().await;
        caller.sent();
    }
    server.shared.answers.send_replace(false);
    for caller in callers.clone() {
        clients.spawn(async move {
            for _ in 0..5 {
                assert!(!caller.call().await, "nothing is answered");
            }
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    let sent: Vec<_> = callers.iter().map(Caller::sent).collect();
    server.shared.answers.send_replace(true);
    for caller in callers {
        clients.spawn(async move {
            let (calls, good) = caller.recover().await;
            // No more than two retries for each success.
            assert!(caller.budget.is_noop() || caller.sent() <= calls + 2 * good);
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended.unwrap();
    }
    sent
}

/// The first call has two retries. The failure of its last attempt is the third, and the next is
/// the fourth.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_is_sent_two_retries_a_client() {
    assert_eq!(stall(RetryBudget::default).await, [5 + 2; 20]);
}

/// Without a budget, every attempt that the policy allows is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stall_without_a_budget_is_sent_all() {
    assert_eq!(stall(RetryBudget::unlimited).await, [3 * 5; 20]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_client_in_an_outage_sends_three() {
    let server = Server::start(0).await;
    let caller = Caller::new(&server, RetryBudget::default(), HANGS);
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let caller = caller.clone();
        calls.spawn(async move { caller.call().await });
    }
    assert!(calls.join_all().await.iter().all(|good| !good));
    assert_eq!(caller.sent(), 200 + 3);

    // The server is back and refuses every third request: each call succeeds once the budget has
    // recovered.
    server.shared.places.add_permits(30);
    caller.recover().await;
    caller.sent();
    server.shared.arrived.store(0, Ordering::Relaxed);
    server.shared.refused.store(3, Ordering::Relaxed);
    for _ in 0..100 {
        assert!(caller.call().await);
    }
    assert_eq!(caller.sent(), 149);
}
