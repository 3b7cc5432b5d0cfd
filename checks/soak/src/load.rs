//! The clients, and the calls that they make for ever.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reattempt::endpoints::{BaseUrl, Endpoints, EndpointsHandle, EndpointsLayer};
use reattempt::guard::handle::now;
use reattempt::guard::{AdaptiveLimit, Bulkhead, CircuitBreaker, GuardLayer, Limit, RateLimit};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::schedule::Constant;
use reattempt::standard::StandardLayer;
use reattempt::{Http, ReplayBody, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_testing::PermitCount;
use tokio::sync::RwLock;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};

use crate::server::respond_in_memory;

/// The destinations of the calls in memory. The tables of budgets and guards hold a tenth of them.
const DESTINATIONS: u32 = 10_000;

type RequestBody = Full<Bytes>;
type Calls = BoxCloneSyncService<Request<RequestBody>, Result<u16, ()>, BoxError>;

/// The clients of one version of HTTP, and those in memory.
#[derive(Clone)]
struct Clients {
    standard: Calls,
    hedged: Calls,
    endpoints: Calls,
    in_memory: Calls,
}

/// The load, and what it holds.
pub(crate) struct Load {
    clients: Vec<Clients>,
    servers: Vec<SocketAddr>,
    sets: Vec<EndpointsHandle<BaseUrl>>,
    bulkheads: Vec<Bulkhead>,
    permits: PermitCount,
    calls: AtomicU64,
    /// Read by each call, and written while everything is counted.
    pub(crate) running: RwLock<()>,
}

impl Load {
    pub(crate) fn new(servers: Vec<SocketAddr>) -> Result<Self, BoxError> {
        let (permits, calls, running) = (PermitCount::default(), AtomicU64::new(0), RwLock::new(()));
        let (sets, bulkheads) = (Vec::new(), Vec::new());
        let mut load = Self { clients: Vec::new(), servers, sets, bulkheads, permits, calls, running };
        for http2 in [false, true] {
            let clients = load.clients(http2)?;
            load.clients.push(clients);
        }
        Ok(load)
    }

    fn clients(&mut self, http2: bool) -> Result<Clients, BoxError> {
        let client = || {
            let mut connector = HttpConnector::new();
            connector.set_nodelay(true);
            let mut builder = Client::builder(TokioExecutor::new());
            builder.http2_only(http2).pool_max_idle_per_host(4);
            builder.build::<_, ReplayBody<RequestBody>>(connector)
        };
        let budget = self.permits.clone();
        let delay = Constant::new(Duration::from_millis(1));
        let retries = RetryPolicy::http().boxed_errors().backoff(delay).budget(budget.clone());
        let bulkhead = Bulkhead::new(1_000);
        self.bulkheads.push(bulkhead.clone());
        let standard = StandardLayer::http().retry(retries.clone()).limits(CircuitBreaker::rate(), bulkhead);
        let hedges = HedgePolicy::http().delay(Duration::from_millis(2)).budget(budget);
        let endpoints = EndpointsLayer::with(Http::new(), Endpoints::urls(self.urls(usize::MAX))?);
        self.sets.push(endpoints.endpoints());
        let limits = (CircuitBreaker::rate(), AdaptiveLimit::aimd());
        let guards = ServiceBuilder::new()
            .layer(RetryLayer::new(
                RetryPolicy::http().boxed_errors().backoff(Constant::immediate()).budget(RetryBudget::default()),
            ))
            .layer(GuardLayer::http(limits))
            .layer(GuardLayer::http(RateLimit::new(Limit::per_second(1_000_000), 1_000_000).no_queue()));
        Ok(Clients {
            standard: boxed(ServiceBuilder::new().layer(standard).service(client())),
            hedged: boxed(ServiceBuilder::new().layer(HedgeLayer::new(hedges)).service(client())),
            endpoints: boxed(ServiceBuilder::new().layer(RetryLayer::new(retries)).layer(endpoints).service(client())),
            in_memory: boxed(guards.service(service_fn(respond_in_memory::<ReplayBody<RequestBody>>))),
        })
    }

    /// Returns the base URLs of the servers whose bit is set.
    fn urls(&self, mask: usize) -> Vec<String> {
        let chosen = self.servers.iter().enumerate().filter(|(index, _)| mask >> index & 1 == 1);
        chosen.map(|(_, address)| format!("http://{address}")).collect()
    }

    /// Calls every destination once, which fills the tables of budgets and guards.
    pub(crate) async fn visit_all(&self) -> Result<(), BoxError> {
        for number in 0..DESTINATIONS {
            for clients in &self.clients {
                let request = Request::get(format!("http://d{number}.example/{number}")).body(Full::default())?;
                // A failure is the point of the servers.
                let _ = clients.in_memory.clone().oneshot(request).await;
            }
        }
        Ok(())
    }

    /// Makes calls, one after the other, for ever.
    pub(crate) async fn work(self: Arc<Self>, seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        loop {
            let running = self.running.read().await;
            // A failure is the point of the servers.
            let _ = self.call(&mut random).await;
            self.calls.fetch_add(1, Ordering::Relaxed);
            drop(running);
            // A call in memory is never pending.
            tokio::task::yield_now().await;
        }
    }

    async fn call(&self, random: &mut SmallRng) -> Result<(), BoxError> {
        let clients = &self.clients[random.random_range(0..self.clients.len())];
        let server = self.servers[random.random_range(0..self.servers.len())];
        let body = || Full::from(vec![b'x'; 1024]);
        let (client, request) = match random.random_range(0..8) {
            0 | 1 => (&clients.standard, Request::put(format!("http://{server}/")).body(body())),
            2 | 3 => (&clients.hedged, Request::get(format!("http://{server}/")).body(Full::default())),
            4 | 5 => (&clients.endpoints, Request::put(format!("http://{}/", self.servers[0])).body(body())),
            _ => {
                let destination = random.random_range(0..DESTINATIONS);
                let path = random.random_range(0..1000);
                (
                    &clients.in_memory,
                    Request::get(format!("http://d{destination}.example/{path}")).body(Full::default()),
                )
            }
        };
        let mut call = Box::pin(client.clone().oneshot(request?));
        // A fifth of the calls are dropped after a few polls, wherever they are by then.
        let mut polls = if random.random_ratio(1, 5) { random.random_range(1..6) } else { u32::MAX };
        poll_fn(|cx| match call.as_mut().poll(cx) {
            Poll::Pending if polls == 1 => Poll::Ready(()),
            Poll::Pending => {
                polls -= 1;
                Poll::Pending
            }
            Poll::Ready(_) => Poll::Ready(()),
        })
        .await;
        Ok(())
    }

    /// Lets endpoints come and go, for ever.
    pub(crate) async fn change_endpoints(self: Arc<Self>) {
        for round in 0_usize.. {
            tokio::time::sleep(Duration::from_millis(100)).await;
            // Any set but the empty one.
            let mask = round % ((1 << self.servers.len()) - 1) + 1;
            for set in &self.sets {
                // The list is valid.
                let _ = set.update_urls(self.urls(mask));
            }
        }
    }

    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// Returns the permits, places and attempts that are in use.
    pub(crate) fn held(&self) -> usize {
        let in_bulkhead = |bulkhead: &Bulkhead| {
            let of_server = |server: &SocketAddr| {
                let usage = bulkhead.usage_at(&server.to_string(), now());
                usage.in_flight as usize + usage.waiting as usize
            };
            self.servers.iter().map(of_server).sum::<usize>()
        };
        let in_sets = self.sets.iter().flat_map(EndpointsHandle::view).map(|view| view.in_flight).sum::<usize>();
        self.permits.in_use() + self.bulkheads.iter().map(in_bulkhead).sum::<usize>() + in_sets
    }
}

/// Boxes a service that reads its responses to their ends.
fn boxed<S, B>(service: S) -> Calls
where
    S: tower::Service<Request<RequestBody>, Response = Response<B>, Future: Send> + Clone + Send + Sync + 'static,
    S::Error: Into<BoxError>,
    B: Body<Error: Into<BoxError>> + Send + 'static,
    B::Data: Send,
{
    BoxCloneSyncService::new(service.map_err(Into::into).and_then(|response: Response<B>| async move {
        let status = response.status().as_u16();
        response.into_body().collect().await.map_err(Into::into)?;
        Ok::<_, BoxError>(Ok(status))
    }))
}
