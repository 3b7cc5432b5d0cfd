//! The standard stack: retries or hedges, a circuit breaker, a limit on calls in flight and time limits in one layer.
//!
//! ```
//! use reattempt::standard::StandardLayer;
//! use tower::ServiceBuilder;
//!
//! let builder = ServiceBuilder::new().layer(StandardLayer::http());
//! ```
//!
//! | part, from the outside in | default | reason |
//! |---|---|---|
//! | total time of a call | 30 s | like `max_elapsed`: most callers have given up by then |
//! | retries | 3 attempts, full jitter from 100 ms to 5 s, and the cautious budget | the [defaults](reattempt_engine::RetryPolicy) for retries |
//! | circuit breaker per destination | opens for 10 s if half of at least 20 attempts within 60 s fail | if 30 % of attempts fail, retries still help |
//! | calls in flight per destination | 64; further calls are refused | a slow server cannot hold all of the client's tasks and connections |
//! | attempt timeout, up to the response head | 10 s, at most half of the total time | leaves time for another attempt |
//! | call throttle, fallback | none | both change the outcome of calls |
//!
//! [`StandardLayer`] lists the setter for each part. Hedges can replace retries. If two settings contradict each other,
//! [`checked`](StandardLayer::checked) returns an error that names both. The parts of the stack are also separate
//! layers: [`RetryLayer`](reattempt_engine::RetryLayer), [`HedgeLayer`](reattempt_engine::hedge::HedgeLayer) and
//! [`GuardLayer`](reattempt_guard::GuardLayer).
//!
//! # Idle connections
//!
//! Around a client and one without a pool, retries after a lost connection use a new one. This is one more line:
//!
//! ```
//! # use http_body_util::Full;
//! # use hyper_util::client::legacy::Client;
//! # use hyper_util::rt::TokioExecutor;
//! # use reattempt::fresh::FreshRetries;
//! # use reattempt::standard::StandardLayer;
//! # use tower::ServiceBuilder;
//! # let pooled = Client::builder(TokioExecutor::new()).build_http();
//! # let unpooled = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build_http();
//! let client = ServiceBuilder::new()
//!     .layer(StandardLayer::http())
//!     .service(FreshRetries::new(pooled, unpooled));
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! ```
//!
//! # Several servers
//!
//! [`endpoints`](StandardLayer::endpoints) sends each attempt to one of several base URLs. Each endpoint has its own
//! limit on calls in flight, and an endpoint that keeps failing is ejected. There is still a single breaker for the
//! whole service, which opens if half of all attempts fail:
//!
//! ```
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::endpoints::Endpoints;
//! use reattempt::standard::StandardLayer;
//! use tower::ServiceBuilder;
//!
//! # fn main() -> Result<(), tower::BoxError> {
//! let servers = Endpoints::urls(["http://eu.example/api", "http://us.example/api"])?;
//! let client = ServiceBuilder::new()
//!     .layer(StandardLayer::http().endpoints(servers).checked()?)
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! # Ok(())
//! # }
//! ```
//!
//! With one client per server, use a [`Balanced`](reattempt_endpoints::Balanced) service in place of the single client.
//! The servers come from a list, a DNS name or any other source of [`Endpoints`](reattempt_endpoints::Endpoints). Put
//! the limit on calls in flight around each server's client, because the stack's own limit would count the calls to all
//! servers. The breaker must not count consecutive failures, because one failing server may fail many calls in a row:
//!
//! ```
//! use std::net::SocketAddr;
//! use std::time::Duration;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::ReplayBody;
//! use reattempt::endpoints::Endpoints;
//! use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer};
//! use reattempt::standard::StandardLayer;
//! use tower::{Layer, ServiceBuilder};
//!
//! # fn main() -> Result<(), tower::BoxError> {
//! # type Body = ReplayBody<Full<bytes::Bytes>>;
//! # // The guide has the client that connects to one address.
//! # let client_to = |_: SocketAddr| Client::builder(TokioExecutor::new()).build_http::<Body>();
//! let servers = Endpoints::dns("orders.internal:8080", Duration::from_secs(30))?
//!     .connect(move |address| GuardLayer::http(Bulkhead::new(64)).layer(client_to(address)));
//! let client = ServiceBuilder::new()
//!     .layer(StandardLayer::http().guards(CircuitBreaker::rate().consecutive_failures(0)))
//!     .service(servers.http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! # Ok(())
//! # }
//! ```
//!
//! The [guide](crate::guide::servers) shows clients for single addresses, tiers, and the effect of each fault.
//!
//! Over HTTP/2, put a [`LingerLayer`](reattempt_engine::linger::LingerLayer) directly around the client. Otherwise
//! attempts that exceed their time limit, and the losers of hedged calls, can end the connection that all calls share.
//!
//! # What has no time limit
//!
//! The time limits end with the head of an HTTP response. A body that stalls afterwards keeps its place among the calls
//! in flight, so a server with enough stalled bodies gets no more calls. Limit [the time between
//! frames](crate::order#servers-that-stall) around the client. A [fallback](StandardLayer::fallback) is outside the
//! time limits too.
//!
//! # The type to store
//!
//! [`StandardClient`] is the type of a client in a stack with the default parts. [`StandardHedgedClient`] is the type
//! with hedges, and [`StandardDirectedClient`] the type with several base URLs. A throttle or a fallback wraps that
//! type. [`guide::axum`](crate::guide::axum) has a complete example, and [`guide::boxed`](crate::guide::boxed) a boxed
//! form:
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use hyper_util::client::legacy::{Client, connect::HttpConnector};
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::ReplayBody;
//! use reattempt::fallback::{Failed, Fallback, FallbackLayer};
//! use reattempt::guard::{Guarded, Throttle};
//! use reattempt::standard::{StandardClient, StandardLayer};
//! use tower::Layer;
//!
//! type Http = Client<HttpConnector, ReplayBody<Full<Bytes>>>;
//! type NoOffers = fn(&Failed) -> Option<Response<Bytes>>;
//!
//! struct Shop {
//!     prices: StandardClient<Http>,
//!     offers: Fallback<Guarded<StandardClient<Http>, Throttle>, NoOffers>,
//! }
//!
//! impl Shop {
//!     fn new(http: Http) -> Self {
//!         let no_offers: NoOffers = |_| Some(Response::new(Bytes::from_static(b"[]")));
//!         let offers = StandardLayer::http()
//!             .throttle(Throttle::new())
//!             .fallback(FallbackLayer::http(no_offers));
//!         Self { prices: StandardLayer::http().layer(http.clone()), offers: offers.layer(http) }
//!     }
//! }
//!
//! let shop = Shop::new(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<Request<Full<Bytes>>, _>(&shop.prices);
//! # reattempt::check::<Request<Full<Bytes>>, _>(&shop.offers);
//! ```

use reattempt_control::{Bulkhead, CircuitBreaker, RetryBudget};
use reattempt_endpoints::Directed;
use reattempt_engine::hedge::{Hedge, HedgePolicy};
use reattempt_engine::protocol::RequestProtocol;
use reattempt_engine::{Http, Retry, RetryPolicy};
use reattempt_guard::Guarded;
use reattempt_schedule_exponential::Exponential;

mod endpoints;
#[cfg(feature = "grpc")]
mod grpc;
mod layer;
mod policy;
mod service;

pub use endpoints::StandardEndpoints;
pub use layer::{StandardGuards, StandardLayer};
pub use policy::AttemptPolicy;
pub use service::Standard;

/// The type of a client `C` in the standard stack with its default parts. Use it for struct fields, for example.
///
/// The second parameter is the protocol.
pub type StandardClient<C, P = Http> = Standard<
    Retry<
        Guarded<C, StandardGuards, P, <P as RequestProtocol>::Errors>,
        RetryPolicy<P, Exponential, RetryBudget, <P as RequestProtocol>::Errors>,
    >,
>;

/// The type of a client `C` in the standard stack with hedges instead of retries ([`StandardLayer::hedge`]). All other
/// parts are the defaults.
pub type StandardHedgedClient<C, P = Http> = Standard<
    Hedge<
        Guarded<C, StandardGuards, P, <P as RequestProtocol>::Errors>,
        HedgePolicy<P, RetryBudget, <P as RequestProtocol>::Errors>,
    >,
>;

/// The type of a client `C` in the standard stack with several base URLs ([`StandardLayer::endpoints`]). All other
/// parts are the defaults.
pub type StandardDirectedClient<C, P = Http> = Standard<
    Retry<
        Guarded<
            Directed<Guarded<C, Bulkhead, P, <P as RequestProtocol>::Errors>, P, <P as RequestProtocol>::Errors>,
            CircuitBreaker,
            P,
            <P as RequestProtocol>::Errors,
        >,
        RetryPolicy<P, Exponential, RetryBudget, <P as RequestProtocol>::Errors>,
    >,
>;
