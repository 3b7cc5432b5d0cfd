//! Late answers over HTTP/2: the stream of an attempt that a layer drops is not reset at once.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::ReplayBody;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::linger::LingerLayer;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::advance;
use tower::{Layer, Service, ServiceExt};

type Body = Empty<Bytes>;
type Http = Client<HttpConnector, ReplayBody<Body>>;

/// A server whose first response of each pair waits for the test.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    gate: Arc<Semaphore>,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    connections: AtomicUsize,
    arrived: AtomicUsize,
    answered: AtomicUsize,
    reset: AtomicUsize,
}

/// Counts the reset of a stream whose response was not sent yet.
struct Pending(Arc<Counts>, bool);

impl Drop for Pending {
    fn drop(&mut self) {
        let Self(counts, answered) = self;
        let count = if *answered { &counts.answered } else { &counts.reset };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (gate, counts) = (Arc::new(Semaphore::new(0)), Arc::<Counts>::default());
        let this = Self { address: listener.local_addr().unwrap(), gate, counts };
        let server = this.clone();
        tokio::spawn(async move {
            loop {
                let socket = TokioIo::new(listener.accept().await.unwrap().0);
                server.counts.connections.fetch_add(1, Ordering::SeqCst);
                let server = server.clone();
                let service = service_fn(move |_| server.clone().answer());
                tokio::spawn(http2::Builder::new(TokioExecutor::new()).serve_connection(socket, service));
            }
        });
        this
    }

    async fn answer(self) -> Result<Response<Full<Bytes>>, Infallible> {
        let mut pending = Pending(Arc::clone(&self.counts), false);
        if self.counts.arrived.fetch_add(1, Ordering::SeqCst).is_multiple_of(2) {
            self.gate.acquire().await.unwrap().forget();
        }
        pending.1 = true;
        Ok(Response::new(Full::from("hello")))
    }

    fn arrived(&self) -> usize {
        self.counts.arrived.load(Ordering::SeqCst)
    }

    /// Returns the numbers of connections, responses, and streams that were reset before their response.
    fn ends(&self) -> (usize, usize, usize) {
        let Counts { connections, answered, reset, .. } = &*self.counts;
        let count = |count: &AtomicUsize| count.load(Ordering::SeqCst);
        (count(connections), count(answered), count(reset))
    }

    fn request(&self) -> Request<Body> {
        Request::get(format!("http://{}/", self.address)).body(Body::new()).unwrap()
    }
}

fn http() -> Http {
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

/// Waits for a condition. The paused clock stands still meanwhile, because this task is never idle.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..10_000_000 {
        if condition() {
            return;
        }
        yield_now().await;
    }
    panic!("it never happens");
}

/// Makes a call whose first attempt gets no answer, and whose second one is sent after 10 ms.
async fn call<S, B>(server: &Server, client: S)
where
    S: Service<Request<Body>, Response = Response<B>, Future: Send + 'static> + Clone + Send + 'static,
    S::Error: std::fmt::Debug + Send,
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug> + Send + 'static,
{
    let call = tokio::spawn(client.oneshot(server.request()));
    until(|| server.arrived() == 1).await;
    advance(Duration::from_millis(12)).await;
    until(|| server.arrived() == 2 || call.is_finished()).await;
    advance(Duration::from_millis(2)).await;
    until(|| call.is_finished()).await;
    let response = call.await.unwrap().unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
}

fn hedges() -> HedgeLayer {
    HedgeLayer::new(HedgePolicy::http().max_attempts(2).delay(Duration::from_millis(10)))
}

// field 15, trap 66
#[tokio::test(start_paused = true)]
async fn losers_stream_is_not_reset() {
    let server = Server::start().await;
    call(&server, hedges().layer(LingerLayer::new().layer(http()))).await;
    server.gate.add_permits(1);
    until(|| server.ends().1 + server.ends().2 == 2).await;
    assert_eq!(server.ends(), (1, 2, 0));
}

// trap 66
#[tokio::test(start_paused = true)]
async fn losers_stream_is_reset_without_the_layer() {
    let server = Server::start().await;
    call(&server, hedges().layer(http())).await;
    until(|| server.ends().1 + server.ends().2 == 2).await;
    assert_eq!(server.ends(), (1, 1, 1));
}

// trap 11
#[tokio::test(start_paused = true)]
async fn losers_stream_is_reset_after_50_ms() {
    let server = Server::start().await;
    call(&server, hedges().layer(LingerLayer::new().layer(http()))).await;
    advance(Duration::from_millis(52)).await;
    until(|| server.ends().1 + server.ends().2 == 2).await;
    assert_eq!(server.ends(), (1, 1, 1));
}
