//! The retry layer's place among other layers, and the hidden retries below it.
//!
//! A layer outside the retry layer sees a call once; a layer inside sees every attempt. `ServiceBuilder` lists layers
//! from the outside in. [`StandardLayer`](crate::standard::StandardLayer) has four rows of this table in one layer: the
//! overall timeout, the retry layer or hedging, guards and the timeout of each attempt.
//!
//! | order | layer | why there |
//! |---|---|---|
//! | 1, outermost | a trace or metric of the whole call | one span for each call |
//! | 2 | a fallback ([`FallbackLayer`](crate::fallback::FallbackLayer)) | it replaces an outcome only after all other layers have given up; inside the retry layer its outcomes prove nothing, so only a repeatable request is retried, and an idempotency key no longer counts once the [backup](crate::fallback::Backup) was called |
//! | 3 | an overall timeout, tower's `Timeout` | bounds all attempts together; drops them cleanly |
//! | 4 | a limit on calls (`ConcurrencyLimit`, `LoadShed`) | a waiting retry keeps its place |
//! | 5 | following redirects (tower-http's `FollowRedirect`) | each hop is a call of its own, and a POST is not repeated because a later hop failed |
//! | 6 | a limit on the time between two frames of a response body | the body belongs to the caller once the retry layer has returned the response ([below](#servers-that-stall)) |
//! | 7 | **the retry layer** | |
//! | 8 | hedging ([`HedgeLayer`](crate::hedge::HedgeLayer)), beside the retry layer or in its place | a retry follows only after all hedged attempts have failed, and a backoff does not count as a slow call |
//! | 9 | guards ([`GuardLayer`](crate::guard::GuardLayer)), all in one layer: breaker, rate limit, bulkhead, pace | they decide about every attempt. A refusal ends the call, unless the guard knows a wait of at most 5 s (a breaker 1 s) and the call has time for it. A hedge does not wait; if it is refused, the attempts in flight continue. Outside the retry layer, guards would decide about calls |
//! | 10 | several servers ([`EndpointsLayer`](crate::endpoints::EndpointsLayer), [`Balanced`](crate::endpoints::Balanced)) | each attempt gets a pick, and a retry or a hedge another endpoint than those that its call has tried. A guard outside has one state for the service, a guard inside one for each endpoint. A `Buffer` outside would hide what a call has tried |
//! | 11 | `Buffer` | its clones share one worker; its error is a `BoxError` ([below](#clients-with-a-boxed-error)) |
//! | 12 | a limit on the attempts that reach the server (`RateLimit`, `ConcurrencyLimit`) | it counts retries too |
//! | 13 | authentication, signatures, a trace of each attempt | renewed for each attempt, like a [`before_attempt`](crate::RetryPolicy::before_attempt) hook |
//! | 14 | a timeout for each attempt | inside guards, so that a breaker counts the timeout. tower's `Timeout` outside them looks like a caller that hangs up, and the breaker never opens. Without guards, use [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) |
//! | 15 | other load balancing, reconnecting | every attempt gets a fresh pick |
//! | innermost | the client | |
//!
//! A concurrency limit outside the retry layer holds its permit while a call waits for its retry. Inside, the permit is
//! free during the wait. A tonic interceptor cannot retry a call, because it does not send it: put the interceptor
//! inside, on the channel that the retry layer wraps.
//!
//! # Services that count for each clone
//!
//! The layer sends the first attempt through the readied instance. Each retry is sent through a clone of the previous
//! retry's instance. The first such clone comes from a spare instance, shared by all clones of the client. If the
//! clones of the service below share their state (a `Buffer`, a pool, tonic's `Channel`), this has no effect. A round
//! robin with a counter in each clone picks endpoints 0, 0 and 1: the first retry goes to the first attempt's endpoint.
//! With [`RetryPolicy::clone_per_call`](crate::RetryPolicy::clone_per_call) it picks 0, 1 and 2, at the cost of a clone
//! for each call.
//!
//! No instance is kept that was ever readied. A `LoadShed` that refuses a call leaves its instance in the queue of the
//! limit below it, which then gives it the next place. So call `send`, or a clone that is dropped after the call: a
//! refused handle that stays alive occupies the place that its own retry needs.
//!
//! # A layer that a setting turns off
//!
//! `option_layer(wanted.then(RetryLayer::http))` makes tower's `Either`, which has another type than the client with
//! the layer. It has no method `send` (E0599), and its two sides take requests of different types. Keep the layer, and
//! turn it off by [`never_retry`](crate::RetryPolicy::never_retry). A call is then one attempt, of which nothing is
//! kept:
//!
//! ```
//! use reattempt::{RetryLayer, RetryPolicy};
//!
//! # let wanted = false;
//! let policy = RetryPolicy::http();
//! let layer = RetryLayer::new(if wanted { policy } else { policy.never_retry() });
//! ```
//!
//! # Clients with a boxed error
//!
//! tower's `Timeout`, `Buffer` and `LoadShed` inside the retry layer, and kube's client, fail with a `BoxError`: use
//! [`RetryPolicy::boxed_errors`](crate::RetryPolicy::boxed_errors). Such clients, and those that are boxed or take one
//! body type, have [a page](crate::guide::boxed).
//!
//! # Services that follow redirects
//!
//! The server that answers a POST with a redirect has processed it. If a service below the retry layer follows that
//! redirect and a later hop is refused, a retry would repeat the POST. So behind such a service a request that must not
//! be repeated is not retried. Nor does the layer wait after a guard's refusal of a later hop.
//! [`redirects_below`](crate::Http::redirects_below) lists the signs by which the layer recognises such a service, and
//! overrides them. It is best to follow redirects outside the retry layer. Inside, tower-http's layer needs a body with
//! a `Default`:
//!
//! ```
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::{RetryLayer, check};
//! use tower::ServiceBuilder;
//! use tower_http::follow_redirect::FollowRedirectLayer;
//!
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::http())
//!     .layer(FollowRedirectLayer::new())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! check::<Request<Full<Bytes>>, _>(&client);
//! ```
//!
//! # Callers that upload slowly
//!
//! In front of a service, a [`ShedLayer`](crate::shed::ShedLayer) admits a call once its head has arrived. The call
//! keeps its place while the service reads the request body. So callers that send single bytes slowly could take every
//! place. tower-http's `RequestBodyDeadlineLayer`, inside the shed layer, limits the time for the whole body. Its
//! `RequestBodyTimeoutLayer` limits only the time between two frames, and such callers stay below that limit.
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use futures_util::stream;
//! use http::{Request, Response, StatusCode};
//! use http_body::Frame;
//! use http_body_util::combinators::UnsyncBoxBody;
//! use http_body_util::{BodyExt, Full, StreamBody};
//! use reattempt::guard::AdaptiveLimit;
//! use reattempt::shed::ShedLayer;
//! use tokio::time::sleep;
//! use tower::{ServiceBuilder, ServiceExt};
//! use tower_http::timeout::{DeadlineBody, RequestBodyDeadlineLayer};
//!
//! type Upload = DeadlineBody<UnsyncBoxBody<Bytes, Infallible>>;
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), tower::BoxError> {
//! let server = ServiceBuilder::new()
//!     .layer(ShedLayer::http(AdaptiveLimit::gradient2()))
//!     .layer(RequestBodyDeadlineLayer::new(Duration::from_secs(30)))
//!     .service_fn(async |request: Request<Upload>| {
//!         let body = request.into_body().collect().await;
//!         let mut response = Response::new(Full::<Bytes>::from("thanks"));
//!         if body.is_err() {
//!             *response.status_mut() = StatusCode::REQUEST_TIMEOUT;
//!         }
//!         Ok::<_, Infallible>(response)
//!     });
//! // A caller that sends a byte every ten seconds.
//! let bytes = stream::unfold((), |()| async {
//!     sleep(Duration::from_secs(10)).await;
//!     Some((Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x"))), ()))
//! });
//! let request = Request::post("/").body(StreamBody::new(bytes).boxed_unsync())?;
//! assert_eq!(server.oneshot(request).await?.status(), StatusCode::REQUEST_TIMEOUT);
//! # Ok(())
//! # }
//! ```
//!
//! # Servers that stall
//!
//! No attempt is timed out unless [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) is set, and
//! that limit has three gaps. Each has a remedy in the client or in another layer:
//!
//! | gap | remedy |
//! |---|---|
//! | Over HTTP/2 the retry uses the same connection. If the connection has stalled, so does the retry. | Make the client test its connections: `http2_keep_alive_interval` and `http2_keep_alive_timeout` in hyper-util and reqwest, `http2_keep_alive_interval` and `keep_alive_timeout` in tonic. A connection that fails the test is closed, and its calls are retried on another. |
//! | The limit ends with the response head. If the body stalls, its reader hangs. | tower-http's `ResponseBodyTimeoutLayer` outside the retry layer limits the time without a frame; in reqwest, `read_timeout`. |
//! | If no connection is made in time, the layer cannot distinguish that from a slow server, and a POST is not retried. | Set a shorter `connect_timeout`, in all three clients (hyper-util: `HttpConnector::set_connect_timeout`). Its error is proof that no request was sent. |
//!
//! A body that stalls, under a limit of five seconds between two frames:
//!
//! ```
//! use std::convert::Infallible;
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use futures_util::stream::{self, StreamExt};
//! use http::{Request, Response};
//! use http_body::Frame;
//! use http_body_util::{BodyExt, Empty, StreamBody};
//! use reattempt::{ReplayBody, RetryLayer};
//! use tower::{BoxError, ServiceBuilder, ServiceExt};
//! use tower_http::timeout::{ResponseBodyTimeoutLayer, TimeoutError};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(ResponseBodyTimeoutLayer::new(Duration::from_secs(5)))
//!     .layer(RetryLayer::http())
//!     .service_fn(async |_: Request<ReplayBody<Empty<Bytes>>>| {
//!         let half = Frame::data(Bytes::from("half"));
//!         let frames = stream::iter([Ok::<_, Infallible>(half)]).chain(stream::pending());
//!         Ok::<_, Infallible>(Response::new(StreamBody::new(frames)))
//!     });
//! let response = client.oneshot(Request::get("http://one.example/").body(Empty::new())?).await?;
//! let mut body = Box::pin(response.into_body());
//! let half = body.frame().await.ok_or("the server sends a half")??;
//! assert_eq!(half.into_data().ok(), Some(Bytes::from("half")));
//! let error = body.frame().await.ok_or("the body does not end")?.unwrap_err();
//! assert!(error.is::<TimeoutError>());
//! # Ok(())
//! # }
//! ```
//!
//! # Retries below
//!
//! - **hyper-util's legacy client** sends a request again on a new connection when a pooled one
//!   closed before anything was written. That is safe, and bounded by the number of pooled
//!   connections; `Client::builder(…).retry_canceled_requests(false)` turns it off.
//! - **reqwest** does the same through hyper-util, and retries HTTP/2 requests that the server refused unprocessed
//!   (REFUSED_STREAM, GOAWAY) up to twice; `ClientBuilder::retry(reqwest::retry::never())` turns the latter off. It
//!   also follows redirects. So by default there is no proof that a POST was not processed, and only a repeatable POST
//!   is retried. Use `redirect::Policy::none()` on the client and
//!   [`redirects_below(false)`](crate::Http::redirects_below) on the protocol: then every POST is retried after 429 or
//!   a refused connection.
//! - **tonic's `Channel`** retries nothing. It reconnects when it is next used, so a failed connection causes the error
//!   of a single call.
//! - **Another retry layer**, in a client library for instance, multiplies attempts: three layers of four attempts are
//!   64. [`RetryPolicy::nested`](crate::RetryPolicy::nested) on the layers of one process makes them work together.
//!   Between processes, a [`before_attempt`](crate::RetryPolicy::before_attempt) hook can write the attempt's number
//!   into a header.
