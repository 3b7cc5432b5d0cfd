//! Retries, hedges and guards for the clients of reqwest-middleware.
//!
//! A [`ReattemptMiddleware`] sends each request of a `ClientWithMiddleware` through `reattempt`'s layers. Call sites do
//! not change. Replacing the middleware of reqwest-retry takes two lines:
//!
//! ```
//! use std::time::Duration;
//!
//! use reattempt::RetryPolicy;
//! use reattempt::schedule::Exponential;
//! use reattempt_reqwest_middleware::ReattemptMiddleware;
//! use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
//!
//! # fn build() -> Result<ClientWithMiddleware, reqwest::Error> {
//! // before: let retries = ExponentialBackoff::builder().build_with_max_retries(3);
//! let retries = RetryPolicy::http().backoff(Exponential::full_jitter(Duration::from_secs(1))).max_attempts(4);
//!
//! // reqwest's own retries would multiply with the layer's.
//! let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
//! let client = ClientBuilder::new(http)
//!     // before: .with(RetryTransientMiddleware::new_with_policy(retries))
//!     .with(ReattemptMiddleware::new(retries))
//!     .build();
//! # Ok(client)
//! # }
//! ```
//!
//! | chain | use | reqwest |
//! |---|---|---|
//! | `reqwest-middleware` 0.5 | this page | 0.13 |
//! | `astral-reqwest-middleware` 0.5 (uv, rattler, pixi) | the module `astral`, with the feature `astral` | 0.13 |
//! | `reqwest-middleware` 0.4 | see `reattempt::guide::reqwest_middleware` | 0.12 |
//!
//! Middlewares that are added after this one run once per attempt, and those before it run once per call. Each attempt
//! gets a clone of the call's extensions. After the call, the extensions are those of the attempt that ended last.
//!
//! **No attempt is timed out by default**: set the client's own timeout, or use the [standard
//! stack](reattempt::standard).
//!
//! # Options, reports and errors
//!
//! ```
//! use reattempt::{CallOptions, Report};
//! use reattempt_reqwest_middleware::CallError;
//! use reqwest_middleware::ClientWithMiddleware;
//!
//! async fn order(client: &ClientWithMiddleware) -> reqwest_middleware::Result<reqwest::Response> {
//!     let sent = client
//!         .post("http://shop.example/orders")
//!         .body("one")
//!         .with_extension(CallOptions::new().repeatable(true)) // the options of this call
//!         .send()
//!         .await;
//!     let report = match &sent {
//!         Ok(response) => response.extensions().get::<Report>(),
//!         Err(error) => CallError::of(error).and_then(CallError::report),
//!     };
//!     if let Some(report) = report {
//!         println!("{report}");
//!     }
//!     sent
//! }
//! ```
//!
//! Every error of a call is a [`CallError`] inside [`reqwest_middleware::Error::Middleware`], so `is_timeout` and the
//! other predicates of that enum return `false`. Use the predicates of the error that [`CallError::reqwest`] returns.
//!
//! # Other layers
//!
//! [`ReattemptMiddleware::new`] takes any stack whose outermost layer retries or hedges: retries around guards or
//! endpoints, hedges, the standard stack. To put a guard or a fallback outside the retries, add a second middleware
//! before the one that retries. Each layer keeps its state from call to call. The notes on redirects in
//! `reattempt::guide::reqwest` apply here too: a POST is sent again only if it is repeatable, unless redirects are
//! turned off in reqwest and with [`Http::redirects_below`](reattempt::Http::redirects_below).
//!
//! The outermost layer may also be:
//!
//! - a [table of policies](reattempt::policies), such as `PolicyFile::layer` of `reattempt-policy-file`. Each call
//!   prepares all policies of the table.
//! - `HttpTelemetry::around` of `reattempt`, which measures calls and attempts, with the feature `opentelemetry` or
//!   `tracing` of this crate.
//!
//! # Coming from reqwest-retry 0.9
//!
//! Tests run both middlewares through the same failures, and compare the requests that arrive.
//!
//! | behaviour of reqwest-retry | here |
//! |---|---|
//! | no retry after 1xx, 2xx, 3xx | kept |
//! | 408, 429, 500, 502, 503, 504 and unknown 5xx are retried | kept, for repeatable requests |
//! | 501, 505, 506, 507, 508, 510, 511 are retried | changed: not retried, because a retry would fail in the same way; `Http::on_status` can change that |
//! | no other 4xx is retried | kept, except that 425 (Too Early) is retried |
//! | a POST or a PATCH is repeated like a GET | changed: only if it is marked as [repeatable](reattempt::CallOptions::repeatable), has an idempotency key, or was not processed; `Http::options_for` can mark all requests |
//! | timeouts, failed connections, resets, incomplete responses and connections closed before the response are retried | kept, for repeatable requests; if redirects are off in reqwest and in `Http::redirects_below`, a failed connection is retried for all requests |
//! | a body that is cut off or cannot be decoded is not a failure of the call | kept: the call ends when the response head arrives. A [`PeekBodyLayer`](reattempt::PeekBodyLayer) inside the retries changes that |
//! | an error from reqwest's builder or redirects is not retried | kept |
//! | an error from a later middleware is never retried | changed: it is retried if its source chain contains a known transport error |
//! | `build_with_max_retries(n)` | `max_attempts(n + 1)` |
//! | `retry_bounds(a, b)`: 1 s and 30 min by default, full jitter from zero, doubled each time | `Exponential::full_jitter(a).max_delay(b)`; `RetryPolicy::http` has shorter delays |
//! | `build_with_total_retry_duration(d)`, checked before the delay | `max_elapsed(d)`: a retry that would start after that time is not sent |
//! | `Retry-After` is ignored | changed: the server's delay is respected, or the call ends if it is too long |
//! | no retry budget | changed: in an outage, most retries are not sent; `budget(RetryBudget::unlimited())` turns this off |
//! | a request with a stream body fails before it is sent | changed: it is sent, and can be sent again if all of its body was saved |
//! | a response that causes a retry is dropped, together with its connection | changed: a short body is read, and the connection is reused |
//! | a `RetryableStrategy` | [`Http::classify`](reattempt::Http::classify) |
//! | a failed attempt's changes to the extensions are visible to the next attempt | changed: each attempt gets a clone of the call's extensions |
//! | errors are a `RetryError` in `Error::Middleware`, with the number of retries | changed: errors are a [`CallError`] in `Error::Middleware`, with the report |
//! | a log line for each retry | an [observer](reattempt::observe) on the policy |

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![allow(clippy::duplicate_mod, reason = "one source serves reqwest-middleware and its fork")]
#![cfg_attr(docsrs, feature(doc_cfg))]

use ::reqwest_middleware as api;

#[cfg(feature = "astral")]
#[cfg_attr(docsrs, doc(cfg(feature = "astral")))]
pub mod astral;
mod chain;
mod error;
mod middleware;

pub use chain::{ChainLayer, ChainService, WithOptions};
pub use error::{CallError, ChainError};
pub use middleware::ReattemptMiddleware;
