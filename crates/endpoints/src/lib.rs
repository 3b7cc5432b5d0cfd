//! One client for several equivalent servers.
//!
//! Retries and hedges go to a server that the call has not tried. Fast and healthy servers get more calls, and a server
//! that keeps failing is ejected temporarily.
//!
//! | the client | the servers | use |
//! |---|---|---|
//! | one client for any host: hyper-util, reqwest | base URLs | [`EndpointsLayer`] |
//! | one client per server: a channel, a client for one address | a list, the addresses of a host name, a registry | [`Endpoints`], which creates a [`Balanced`] |
//!
//! ```
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::endpoints::EndpointsLayer;
//! use reattempt::{RetryLayer, RetryPolicy};
//! use tower::ServiceBuilder;
//!
//! # fn main() -> Result<(), reattempt::endpoints::EndpointsError> {
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::new(RetryPolicy::http().boxed_errors()))
//!     .layer(EndpointsLayer::http(["http://one.example/api", "http://two.example/api"])?)
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
//! # Ok(())
//! # }
//! ```
//!
//! If a server accepts no connection, the attempt moves to another one immediately. It keeps its number, and costs no
//! token of the retry budget. A call moves up to three times, unless the budget has seen the whole service fail. If an
//! attempt gets no response for another reason, its retry is sent to another server immediately, if a retry is safe and
//! the budget grants it. If an attempt gets a failure response, its retry is sent to another server after the usual
//! delay. Choosing another server does not make a retry safe, because the servers share state. A request that must not
//! be processed twice is not repeated on another server either.
//!
//! A delay that a failing server requests (503 with a `Retry-After`) binds only that server. A retry at another one
//! waits for the schedule's delay. The delay of a server that limits its callers (429) binds the call everywhere.
//!
//! # The pick
//!
//! The layer draws two random endpoints that are in service and that the call has not tried. It picks the one with the
//! lower *price*: latency × (calls in flight + 1) × (1 + 32 × failure rate). Latencies halve in 2 s, so one slow answer
//! is soon forgotten. The cost is that each client asks a slow server every 4 to 7 s. An endpoint that has not answered
//! gets one call at a time. An endpoint is ejected:
//!
//! | if | for | reason |
//! |---|---|---|
//! | it accepts no connection | 1 s, doubling up to 10 s | [`NoConnection`](EjectReason::NoConnection) |
//! | it fails five times in a row. A lost connection counts as two failures, however many calls it has ended. | 5 s, later 10 s | [`InARow`](EjectReason::InARow) |
//! | it gets 20 or more calls within 10 s, and at least half of them fail | the same | [`FailureRate`](EjectReason::FailureRate) |
//! | it responds with a 503 and a `Retry-After` | that time, up to 60 s | [`Asked`](EjectReason::Asked) |
//!
//! [`EjectionRules`] change the numbers of failures, the times and the largest share. Up to 20 % of the time, chosen at
//! random, is added. At most half of the endpoints are out of service because they fail. If more than half do, they
//! stay in service, and only the price steers calls away from them. Endpoints that accept no connection, or have asked
//! for a wait, can serve nothing. They do not count, and stay out unless all endpoints are out. Outcomes are classified
//! as they are for [guards](reattempt_guard). A fault of this machine, such as a lack of free ports, is not a failure
//! of the endpoint.
//!
//! If the picked endpoint's client is not ready at once, another endpoint's is asked too, and the one that is ready
//! first sends the request.
//!
//! [Weights](Place::weight) steer how often an endpoint is drawn. They are set by [`placed`](Endpoints::placed), and
//! [`LoadReports`] computes them from the load that servers report.
//!
//! # Tiers
//!
//! A call is sent to a later tier if it has tried two endpoints of the earlier tier, or all that are in service there.
//! For example, it goes to another region if the local one is down. In the last tier, at least one endpoint stays in
//! service, and at most half are out because they fail; in earlier tiers, all may be out. If more than half of a tier
//! is out of service, the next tier also gets the calls for those servers until they return. Calls therefore return to
//! a tier server by server.
//!
//! Tiers share no state, so a request's idempotency key may have no effect in another tier. A request that is
//! repeatable only because of its key stays in the tier that may have processed it. It is sent to another server there,
//! or not retried if none is left. With proof that it was not processed, it may go to another tier. For that, the retry
//! layer must get the tier of each attempt. Layers between them may call their inner service later, from a poll,
//! but put neither a `Buffer` nor another set there. Do not add a second retry layer outside or inside the tiers,
//! unless both are [`nested`](reattempt_engine::RetryPolicy::nested). Tower's own retry layer does not get the tier.
//!
//! # Order
//!
//! Put layers for the whole service outside the endpoints: retries or hedges, a breaker, a deadline. Put guards with a
//! separate state for each server inside. Put a `Buffer` inside too: it moves calls to another task, but the endpoints
//! already tried are recorded only on the sending thread. If two layers retry, the inner one avoids the endpoints that
//! it has tried.
//!
//! A layer may call another client with endpoints inside an attempt, for example to fetch a token. Give that client a
//! retry layer of its own. Otherwise, its endpoint counts as the attempt's.
//!
//! A [`Balanced`] sends every request to its servers, whatever its authority. Use a different client for redirects to
//! other hosts. Servers with different prefixes must not redirect to absolute paths.
//!
//! # Refusals
//!
//! Until the first discovery result, up to 4,096 calls wait, for up to 8 s or until their deadline. Further calls are
//! refused with [`Reason::Full`](reattempt_guard::Reason::Full). If there is no endpoint, a call is refused with
//! [`Reason::Empty`](reattempt_guard::Reason::Empty), and if its key keeps it in a tier that is down, with
//! [`Reason::TierDown`](reattempt_guard::Reason::TierDown).

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod balanced;
mod base_url;
mod directed;
mod discover;
mod discovery;
mod error;
mod future;
#[cfg(feature = "grpc")]
mod grpc;
mod guard;
mod handle;
mod job;
mod keys;
mod layer;
mod load_report;
mod load_reports;
mod look_up;
#[cfg(feature = "opentelemetry")]
pub mod metrics;
mod place;
mod race;
mod random;
mod rewrite;
mod send;
mod settings;
mod source;
#[doc(hidden)]
pub mod wall;

pub use balanced::Balanced;
pub use base_url::{BaseUrl, BaseUrls};
pub use directed::Directed;
pub use discover::Discovered;
pub use error::EndpointsError;
pub use future::ResponseFuture;
pub use guard::EndpointGuard;
pub use handle::EndpointsHandle;
pub use layer::{EndpointsLayer, Urls};
pub use load_reports::{LoadReports, ReportWatch, Watching, WatchingFuture};
pub use look_up::{ByClosure, ByTtl, Dns, Every, LookUp};
pub use place::Keyed;
pub use random::seed_picks;
pub use reattempt_control::{
    EjectReason, EjectionRules, EndpointEvent, EndpointId, EndpointTicket, EndpointView, Place,
};
pub use rewrite::Rewrite;
pub use settings::{Endpoints, ForeignHosts};
pub use source::{Connected, List, Source};
