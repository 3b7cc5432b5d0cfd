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
//! | 7 | `Buffer` | its clones share one worker; its error is a `BoxError`: use [`RetryPolicy::boxed_errors`](crate::RetryPolicy::boxed_errors) |
//! | 8 | a limit on what the server gets (`RateLimit`, `ConcurrencyLimit`) | retries count |
//! | 9 | authentication, signatures, a trace of each attempt | made afresh for each attempt, like a [`before_attempt`](crate::RetryPolicy::before_attempt) hook |
//! | 10 | a timeout of each attempt | or [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) |
//! | 11 | load balancing, reconnecting | every attempt gets a fresh pick |
//! | innermost | the client | |
//!
//! A limit of concurrency outside the retry layer holds its permit while a call waits to be retried;
//! inside, the permit is free during the wait. A tonic interceptor cannot repeat a call: it sits
//! inside, on the channel that the retry layer wraps.
//!
//! # Retries below
//!
//! - **hyper-util's legacy client** sends a request again on a new connection when a pooled one
//!   closed before anything was written. That is safe, and bounded by the number of pooled
//!   connections; `Client::builder(…).retry_canceled_requests(false)` turns it off.
//! - **reqwest** does the same through hyper-util, and retries HTTP/2 requests that the server
//!   refused unprocessed (REFUSED_STREAM, GOAWAY) up to twice;
//!   `ClientBuilder::retry(reqwest::retry::never())` turns the latter off. It also follows redirects:
//!   what fails at another URL than the request's own is never taken for unprocessed, but a redirect
//!   back to the same URL leaves no trace. Where a POST may be answered so, follow redirects yourself
//!   (`redirect::Policy::none()`).
//! - **tonic's `Channel`** retries nothing. It reconnects when it is next used, so a failed connection
//!   shows as the error of one call.
//! - **Another retry layer**, in a client library say, multiplies: three layers of four attempts are
//!   64. [`RetryPolicy::nested`](crate::RetryPolicy::nested) on the layers of one process makes
//!   them work together; across processes the attempt's number
//!   ([`AttemptNumber`](crate::AttemptNumber)) can be written into a header by a
//!   [`before_attempt`](crate::RetryPolicy::before_attempt) hook.
