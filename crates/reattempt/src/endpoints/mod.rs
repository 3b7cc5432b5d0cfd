//! One client over several equivalent servers.
//!
//! Retries and hedges go to another server than those that the call has tried. Of the others, the fast and healthy ones
//! get more calls, and one that keeps failing is out of service for a while.
//!
//! | the client | the servers | the way |
//! |---|---|---|
//! | one client for any host: hyper-util, reqwest | base URLs with a name of their own | [`EndpointsLayer`] |
//! | one for each server: a channel, a client fixed to an address | a list, the addresses of a name, a registry | [`Endpoints`], which makes a [`Balanced`] |
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
//! An attempt that no server has answered is sent elsewhere at once, if that is safe and the retry budget has a token.
//! After an answer the retry waits for its delay, and goes elsewhere too. Another server is no proof: a request that
//! must not be processed twice is not repeated there, because servers share their state.
//!
//! # The pick
//!
//! Of two random endpoints in service that the call has not tried, the cheaper one is picked. The price is latency ×
//! (calls in flight + 1) × (1 + 32 × failure rate). Five failures in a row, or half of 20 calls or more in 10 s, put an
//! endpoint out for 5 s, doubling to 30 s, plus up to a fifth. At most half of the endpoints are out; if more fail,
//! none is, and the price decides. An endpoint is judged as [guards](crate::guard) judge a server.
//!
//! # Tiers
//!
//! A later tier is used while no endpoint of an earlier one is in service and untried: the other region, if ours is
//! down. In the last tier at most half is out, in an earlier one all may be.
//!
//! # Order
//!
//! Outside are the layers that know the service as a whole: retries or hedges, a breaker, a deadline. Inside are guards
//! that keep a state for each server. A `Buffer` stands below, because it moves a call to another task, and what a call
//! has tried is known on the thread that sends it. Of two layers that retry, the inner one avoids what it has tried.
//!
//! A [`Balanced`] sends every request to its servers, whatever its authority. Follow redirects to other hosts through
//! another client. Servers with different prefixes must not redirect by absolute paths.
//!
//! # What is refused
//!
//! Before the first answer of a discovery, calls wait up to 5 s or their deadline. Without any endpoint a call is
//! refused with [`Reason::Empty`](crate::guard::Reason::Empty).

mod balanced;
mod base_url;
mod directed;
mod discover;
mod discovery;
mod error;
mod future;
mod guard;
mod handle;
mod layer;
mod look_up;
mod on_demand;
mod random;
mod rewrite;
mod send;
mod settings;
mod source;

pub use balanced::Balanced;
pub use base_url::BaseUrl;
pub use directed::Directed;
pub use discover::Discovered;
pub use error::EndpointsError;
pub use future::ResponseFuture;
pub use guard::EndpointGuard;
pub use handle::EndpointsHandle;
pub use layer::{EndpointsLayer, Urls};
pub use look_up::{ByClosure, Dns, Every, LookUp};
pub use on_demand::OnDemand;
pub use reattempt_control::{EjectReason, EndpointEvent, EndpointId, EndpointTicket, EndpointView};
pub use rewrite::Rewrite;
pub use settings::Endpoints;
pub use source::{Connected, List, Source};
