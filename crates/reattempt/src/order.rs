//! Where the retry layer goes among other layers, and which hidden retries lie below it.
//!
//! A layer outside of the retry layer sees a call once; a layer inside sees every attempt.
//! `ServiceBuilder` lists them from the outside in.
//!
//! | order | layer | why there |
//! |---|---|---|
//! | 1, outermost | a trace or metric of the whole call | one span for each call |
//! | 2 | an overall timeout, tower's `Timeout` | bounds all attempts together; drops them cleanly |
//! | 3 | a limit on calls (`ConcurrencyLimit`, `LoadShed`) | a waiting retry keeps its place |
//! | 4 | hedging | each hedge is retried, or give hedging the retries' place |
//! | 5 | **the retry layer** | |
//! | 6 | a circuit breaker | it sees every attempt, and its refusal ends the call at once |
//! | 7 | pacing ([`PaceLayer`](crate::PaceLayer)) | every attempt waits its turn, and holds meanwhile the place that limits and `Buffer` have given it; a breaker's refusal does not wait |
//! | 8 | `Buffer` | its clones share one worker; its error is a `BoxError`: use [`RetryPolicy::boxed_errors`](crate::RetryPolicy::boxed_errors) |
//! | 9 | a limit on what the server gets (`RateLimit`, `ConcurrencyLimit`) | retries count |
//! | 10 | authentication, signatures, a trace of each attempt | made afresh for each attempt, like a [`before_attempt`](crate::RetryPolicy::before_attempt) hook |
//! | 11 | a timeout of each attempt | or [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) |
//! | 12 | load balancing, reconnecting | every attempt gets a fresh pick |
//! | innermost | the client | |
//!
//! A limit of concurrency outside the retry layer holds its permit while a call waits to be retried;
//! inside, the permit is free during the wait. A tonic interceptor cannot repeat a call: it sits
//! inside, on the channel that the retry layer wraps.
//!
//! # Clients that are boxed or take one body type
//!
//! The layer sends requests whose body is a [`ReplayBody`](crate::ReplayBody). A client whose body
//! type is fixed takes them through `map_request`, below the layer:
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::combinators::BoxBody;
//! use http_body_util::{BodyExt, Full};
//! use reattempt::{ReplayBody, RetryLayer};
//! use tower::util::BoxCloneService;
//! use tower::{BoxError, Service, ServiceBuilder};
//!
//! type Client = BoxCloneService<Request<BoxBody<Bytes, BoxError>>, Response<Full<Bytes>>, std::io::Error>;
//!
//! fn retried(
//!     client: Client,
//! ) -> impl Service<Request<Full<Bytes>>, Response = Response<Full<Bytes>>, Error = std::io::Error> {
//!     ServiceBuilder::new()
//!         .layer(RetryLayer::http())
//!         .map_request(|request: Request<ReplayBody<Full<Bytes>>>| request.map(BodyExt::boxed))
//!         .service(client)
//! }
//! ```
//!
//! # Retries below
//!
//! - **hyper-util's legacy client** sends a request again on a new connection when a pooled one
//!   closed before anything was written. That is safe, and bounded by the number of pooled
//!   connections; `Client::builder(…).retry_canceled_requests(false)` turns it off.
//! - **reqwest** does the same through hyper-util, and retries HTTP/2 requests that the server
//!   refused unprocessed (REFUSED_STREAM, GOAWAY) up to twice;
//!   `ClientBuilder::retry(reqwest::retry::never())` turns the latter off. It also follows redirects
//!   and leaves no trace of them, so by default nothing behind it proves that a POST was not
//!   processed, and a POST is not retried at all. With `redirect::Policy::none()` on the client and
//!   [`redirects_below(false)`](crate::RetryPolicy::redirects_below) on the policy it is, after 429
//!   or a refused connection.
//! - **tonic's `Channel`** retries nothing. It reconnects when it is next used, so a failed connection
//!   shows as the error of one call.
//! - **Another retry layer**, in a client library say, multiplies: three layers of four attempts are
//!   64. [`RetryPolicy::nested`](crate::RetryPolicy::nested) on the layers of one process makes
//!   them work together; across processes the attempt's number
//!   ([`AttemptNumber`](crate::AttemptNumber)) can be written into a header by a
//!   [`before_attempt`](crate::RetryPolicy::before_attempt) hook.
