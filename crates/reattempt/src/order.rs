//! The order of layers around a client, and hidden retries inside the client.
//!
//! A layer outside the retry layer handles each call once; a layer inside it handles every attempt. `ServiceBuilder`
//! lists layers from the outside in. [`StandardLayer`](crate::standard::StandardLayer) combines five rows of this
//! table: the overall timeout, retries or hedging, guards, several servers if there are any, and the attempt timeout.
//!
//! | order | layer | reason |
//! |---|---|---|
//! | 1, outermost | a trace or metric of the whole call | one span for each call |
//! | 2 | a fallback ([`FallbackLayer`](reattempt_fallback::FallbackLayer)) | it replaces an outcome only after all other layers have given up. Inside the retry layer, its outcomes never prove that a request was not processed. Only repeatable requests would then be retried, and an idempotency key would not count once the [backup](reattempt_fallback::Backup) was called |
//! | 3 | an overall timeout, tower's `Timeout` | limits the time of all attempts together, and cancels them cleanly |
//! | 4 | a limit on calls (`ConcurrencyLimit`, `LoadShed`) | a waiting retry keeps its place |
//! | 5 | following redirects (tower-http's `FollowRedirect`) | each hop is a separate call, so a POST is not repeated because a later hop failed |
//! | 6 | resuming downloads ([`ResumeLayer`](reattempt_resume::ResumeLayer)) | it reads the body after the retry layer has returned the response. The limit in the next row turns a stall into an error, after which this layer resumes the download. No layer inside this one may change the bytes of a body: a range counts the bytes of the server. Decoders (tower-http's `Decompression`) therefore belong outside, and a layer that checks a digest of each response belongs inside |
//! | 7 | a limit on the time between two frames of a response body | once the retry layer has returned the response, the caller reads the body ([below](#servers-that-stall)) |
//! | 8 | **the retry layer** | |
//! | 9 | hedging ([`HedgeLayer`](reattempt_engine::hedge::HedgeLayer)), inside the retry layer or in its place | a retry follows only after all hedged attempts have failed, and a backoff is not mistaken for a slow call |
//! | 10 | guards ([`GuardLayer`](reattempt_guard::GuardLayer)), all in one layer: breaker, rate limit, bulkhead, pace | they admit or refuse every attempt; outside the retry layer they would do so only once per call. A refusal ends the call, unless the guard's wait is at most 5 s (for a breaker, 1 s) and fits into the call's remaining time. A hedge does not wait: if it is refused, the attempts in flight continue |
//! | 11 | several servers ([`EndpointsLayer`](reattempt_endpoints::EndpointsLayer), [`Balanced`](reattempt_endpoints::Balanced)) | a server is picked for each attempt, and a retry or hedge goes to a server that the call has not tried. A guard outside this layer has one state for the whole service; a guard inside it has one for each endpoint. A breaker outside should not count consecutive failures, because one broken connection can fail many calls at once. A `Buffer` outside would hide the endpoints that a call has tried |
//! | 12 | reading short bodies ([`PeekBodyLayer`](crate::PeekBodyLayer)) | inside everything that judges responses, so that a body that breaks is a failed attempt for all of it. Decoders and limits on the time between two frames of a *short* body belong inside: what is read here has ended before the layer of row 7 begins. The layers below need not know |
//! | 13 | `Buffer` | its clones share one worker, and its error is a `BoxError` ([below](#clients-with-a-boxed-error)) |
//! | 14 | a limit on the attempts that reach the server (`RateLimit`, `ConcurrencyLimit`) | it counts retries too |
//! | 15 | authentication, signatures, a trace of each attempt | renewed for each attempt, like a [`before_attempt`](crate::RetryPolicy::before_attempt) hook |
//! | 16 | a timeout for each attempt | inside guards, so that a breaker counts the timeout. Outside them, tower's `Timeout` looks like a caller that cancels, so the breaker never opens. Without guards, use [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) |
//! | 17 | other load balancing, reconnecting | an endpoint is picked for every attempt |
//! | 18 | reading late answers ([`LingerLayer`](reattempt_engine::linger::LingerLayer)), for hedges and attempt timeouts over HTTP/2 | only the client's own future can go on in the background after a layer has dropped it |
//! | innermost | the client, or one with a pool and one without ([`FreshRetries`](reattempt_engine::fresh::FreshRetries)) | no layer that sends later is between them and the retry layer |
//!
//! Outside the retry layer, a concurrency limit holds its permit while a call waits for its retry. Inside, the permit
//! is released during the wait. A tonic interceptor cannot retry a call, because the interceptor does not send it. Put
//! the interceptor on the channel that the retry layer wraps.
//!
//! # Services with state in each clone
//!
//! The layer sends the first attempt through the instance that is ready, and each retry through a clone of the previous
//! retry's instance. The first retry uses a clone of a spare instance that all clones of the client share. The choice
//! of instance makes no difference if clones of the inner service share their state, as with a `Buffer`, a pool or
//! tonic's `Channel`. A round-robin service with a counter in each clone picks endpoints 0, 0 and 1 for three attempts,
//! so the first retry goes to the first attempt's endpoint. With
//! [`RetryPolicy::clone_per_call`](crate::RetryPolicy::clone_per_call), it picks 0, 1 and 2, at the cost of one clone
//! per call.
//!
//! The layer never stores an instance that is ready. When a `LoadShed` refuses a call, the instance that refused it
//! stays in the queue of the inner limit, and later gets a permit. Therefore call `send`, or drop the clone after the
//! call. A refused clone that stays alive takes the permit that its own retry needs.
//!
//! # Turning the layer off with a setting
//!
//! `option_layer(wanted.then(RetryLayer::http))` returns tower's `Either`, whose type differs from that of the wrapped
//! client. `Either` has no `send` method (E0599), and its two variants take different request types. Instead, keep the
//! layer and set [`never_retry`](crate::RetryPolicy::never_retry). Each call is then a single attempt, and its body is
//! not saved:
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
//! The error type of tower's `Timeout`, `Buffer` and `LoadShed`, and of kube's client, is `BoxError`. If one of them is
//! inside the retry layer, use [`RetryPolicy::boxed_errors`](crate::RetryPolicy::boxed_errors). [A guide
//! page](crate::guide::boxed) covers such clients, and clients that are boxed or accept only one body type.
//!
//! # Services that follow redirects
//!
//! A server that answers a POST with a redirect has processed it. If a service inside the retry layer follows that
//! redirect and a later hop is refused, a retry would repeat the POST. Around such a service, only repeatable requests
//! are therefore retried, and the layer does not wait after a guard refuses a later hop.
//! [`redirects_below`](crate::Http::redirects_below) explains how such a service is detected, and overrides the
//! detection. Preferably, follow redirects outside the retry layer. Inside it, tower-http's layer needs a body that
//! implements `Default`:
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
//! # Slow uploads
//!
//! A [`ShedLayer`](reattempt_guard::shed::ShedLayer) admits a call as soon as its head has arrived. The call holds its
//! place while the service reads the request body. Callers that send single bytes slowly could therefore take every
//! place. tower-http's `RequestBodyDeadlineLayer`, inside the shed layer, limits the time for the whole body.
//! tower-http's `RequestBodyTimeoutLayer` limits only the time between two frames, and such callers stay below that
//! limit.
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
//! # Uploads that are opened again
//!
//! A retry or hedge layer finds an [`UploadBody`](reattempt_engine::body::UploadBody) in the request, also in a box. A
//! layer outside it that changes the body, such as one that compresses it or adds a checksum, hides the upload, which
//! is then sent once. Put such a layer inside, where each attempt passes it, or its work into the function that opens
//! the body.
//! A `FollowRedirect` may be on either side: outside it clones the upload, inside it clones the attempt's `ReplayBody`.
//!
//! # Servers that stall
//!
//! No attempt is timed out unless [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) is set, and that limit has
//! three gaps. Another layer or a client setting closes each of them:
//!
//! | gap | remedy |
//! |---|---|
//! | Over HTTP/2, the retry uses the connection of the attempt that timed out. If the connection has stalled, the retry stalls too. | Make the client test its connections: `http2_keep_alive_interval` and `http2_keep_alive_timeout` in hyper-util and reqwest, `http2_keep_alive_interval` and `keep_alive_timeout` in tonic. A connection that fails the test is closed, and its calls are retried on another. |
//! | The limit ends with the response head. If the body stalls, its reader hangs. | tower-http's `ResponseBodyTimeoutLayer` outside the retry layer limits the time between frames; in reqwest, `read_timeout`. |
//! | If connecting takes too long, the layer cannot distinguish that from a slow server, and a POST is not retried. | Set a shorter `connect_timeout`, in all three clients (hyper-util: `HttpConnector::set_connect_timeout`). The error of this timeout proves that no request was sent. |
//!
//! This example limits the time between two frames of a response body to five seconds:
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
//! # Retries below the layer
//!
//! - **hyper-util's legacy client** resends a request on a new connection if a pooled one closed before anything was
//!   written. This resending is safe, and limited by the number of pooled connections.
//!   `Client::builder(…).retry_canceled_requests(false)` turns it off. Over HTTP/2, calls can wait for a connection
//!   that another call is opening. If that other call is cancelled, the layer resends the waiting calls once, without
//!   counting an attempt. A call's last attempt is not resent.
//! - **reqwest** does the same through hyper-util, and retries HTTP/2 requests that the server refused without
//!   processing them (REFUSED_STREAM, GOAWAY) up to twice; `ClientBuilder::retry(reqwest::retry::never())` turns these
//!   retries off. reqwest also follows redirects. By default, there is therefore no proof that a POST was not
//!   processed, and only a repeatable POST is retried. Use `redirect::Policy::none()` on the client and
//!   [`redirects_below(false)`](crate::Http::redirects_below) on the protocol. Every POST is then retried after 429 or
//!   a refused connection.
//! - **tonic's `Channel`** does not retry. It reconnects when it is next used, so a failed connection fails only one
//!   call.
//! - **Another retry layer**, for example in a client library, multiplies attempts: three layers of four attempts each
//!   make 64. [`RetryPolicy::nested`](crate::RetryPolicy::nested) coordinates the layers in one process. Between
//!   processes, a [`before_attempt`](crate::RetryPolicy::before_attempt) hook can send the attempt number in a header.
