//! Retries for any HTTP or gRPC client that is a tower `Service`.
//!
//! Wrap a client in one layer. Transient failures are retried, and a retry budget protects a struggling server. A
//! request that the server may have processed is repeated only if that is safe. `Retry-After` is obeyed, delays are
//! jittered, and the caller gets the last attempt's outcome with a report.
//!
//! ```no_run
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::{Report, RetryLayer};
//! use tower::ServiceBuilder;
//!
//! # async fn example() -> Result<(), tower::BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::http())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//!
//! let request = Request::get("http://one.example/").body(Full::<Bytes>::default())?;
//! let response = client.send(request).await?;
//! if let Some(report) = Report::of(&response) {
//!     println!("{report}"); // present only if at least one attempt failed
//! }
//! # Ok(())
//! # }
//! ```
//!
//! This layer also wraps reqwest (feature `reqwest`) and tonic (feature `tonic`):
//!
//! ```
//! # #[cfg(all(feature = "reqwest", feature = "tonic"))] {
//! use reattempt::{ReqwestExt, RetryLayer};
//! use tower::ServiceBuilder;
//!
//! # async fn example() -> Result<(), tower::BoxError> {
//! // reqwest has retries of its own, below these.
//! let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
//! let client = ServiceBuilder::new().layer(RetryLayer::http()).service(http.clone());
//! let response = http.get("http://one.example/").send_with(&client).await?;
//!
//! let channel = tonic::transport::Endpoint::from_static("http://stock.example").connect_lazy();
//! let channel = ServiceBuilder::new().layer(RetryLayer::grpc()).service(channel);
//! # let _ = (response, channel);
//! # Ok(())
//! # }
//! # }
//! ```
//!
//! The first example also needs `bytes`, `http`, `http-body-util`, `tower`, and `hyper-util` with the features
//! `client-legacy`, `http1` and `tokio`.
//!
//! **No attempt is timed out by default**: set the client's own timeout, or use [`standard`].
//!
//! | feature | effect | versions | default |
//! |---|---|---|---|
//! | `http` | layers for HTTP clients; without it, only [`retry()`], schedules and budgets | http 1, tower 0.5 | on |
//! | `hyper` | classifies errors from hyper, hyper-util and h2 | hyper 1, hyper-util 0.1, h2 0.4 | on |
//! | `reqwest` | retries requests of `reqwest::Client` | reqwest 0.13 | off |
//! | `reqwest-0-12` | retries requests of an older `reqwest::Client`: `reqwest_0_12` | reqwest 0.12 | off |
//! | `json` | rules for the JSON bodies of well-known services, with a [`PeekBodyLayer`] | serde_json 1 | off |
//! | `reqwest-blocking` | HTTP's rules for `reqwest::blocking` in [`retry_blocking`](operation::retry_blocking) | reqwest 0.13 | off |
//! | `ureq` | classifies errors from ureq, for the same | ureq 3.5 | off |
//! | `grpc` | supports gRPC over any HTTP/2 client: codes, trailers, service configs | – | off |
//! | `tonic` | retries calls of a tonic `Channel`; implies `grpc` | tonic 0.14 | off |
//! | `digest` | verifies the digests of downloads | RFC 9530 | off |
//! | `tower-http` | supports tower-http's classifiers and its `FollowRedirect` | tower-http 0.7 | off |
//! | `serde` | serializes a [`snapshot`] | serde 1 | off |
//! | `tracing` | emits `tracing` events, and spans for calls and attempts | tracing 0.1 | off |
//! | `opentelemetry` | records metrics and spans for HTTP calls, and metrics for guards and (with `tonic`) gRPC calls | opentelemetry 0.33 | off |
//!
//! | topic | see |
//! |---|---|
//! | a page for each kind of client: the type to store, the trait bounds to write | [`guide`] |
//! | retries in a reqwest-middleware chain | the crate `reattempt-reqwest-middleware` |
//! | our equivalents for another library's settings | [`guide::coming_from`] |
//! | a boxed tonic channel | `guide::tonic`, behind its feature |
//! | retries for a client of your own type | [`guide::own_client`] |
//! | tests of retries and guards | [`guide::testing`] |
//! | logs, metrics and traces | [`guide::logs`] |
//! | everything that is in force now: balances, open breakers, ejected servers | [`snapshot`] |
//! | the report of a failed call | [`report::ReportSlot`] |
//! | every retry setting and its default | [`RetryPolicy`] |
//! | the HTTP settings: what is retried, replayed and read | [`Http`] |
//! | delays, and well-known retry policies by name | [`schedule`], [`profile`] |
//! | the retry budget | [`RetryBudget`] |
//! | options for one call | [`CallOptions`] |
//! | where to put this layer among others | [`order`] |
//! | retries, guards and time limits in one layer | [`standard`] |
//! | circuit breakers, rate limits and other limits for every attempt | [`guard`] |
//! | load shedding in front of a server | [`shed`] |
//! | several equivalent servers behind one client | [`endpoints`] |
//! | the pods of a Kubernetes service | [`guide::kubernetes`], and the crate `reattempt-kubernetes` |
//! | policies that are chosen per request and can be replaced at run time | [`policies`] |
//! | policies from a file, reloaded when it changes | the crate `reattempt-policy-file` |
//! | a second attempt in parallel to a slow one | [`hedge`] |
//! | losers and timed-out attempts over HTTP/2 | [`linger`] |
//! | deadlines that reach the next service in a header | [`deadline`] |
//! | a substitute response for a failed call | [`fallback`] |
//! | responses whose body breaks, or contains the error | [`peek_body`] |
//! | downloads that continue after a broken connection | [`resume`] |
//! | retries on new connections, for pools of dead ones | [`fresh`] |
//! | pacing: calls slowed to the rate that a server accepts | [`guard::Pace`] |
//! | gRPC: service configs, metrics, trailers | `grpc`, behind its feature |
//! | retries of any other operation | [`retry()`], [`operation`] |
//! | retries of `reqwest::blocking` and `ureq` | [`guide::blocking`] |
//! | the reason why a client does not compile | [`check`] |
//!
//! The crate root contains the items that most programs need to wrap a client. All other items are in modules by topic.

// RET-5

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "grpc")]
#[cfg_attr(docsrs, doc(cfg(feature = "grpc")))]
pub mod grpc;
#[cfg(feature = "http")]
pub mod guide;
#[cfg(feature = "http")]
pub mod order;
#[cfg(feature = "http")]
pub mod peek_body;
#[cfg(feature = "http")]
pub mod policies;
pub mod snapshot;
#[cfg(feature = "http")]
pub mod standard;

/// The README, whose examples are compiled as doctests.
#[cfg(all(doctest, feature = "hyper", feature = "reqwest", feature = "tonic"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(feature = "reqwest")]
#[doc(inline)]
pub use reattempt_engine::ReqwestExt;
#[cfg(feature = "reqwest-0-12")]
#[doc(inline)]
pub use reattempt_engine::reqwest_0_12;
#[doc(inline)]
pub use reattempt_engine::{
    CallOptions, Deadline, Report, RetryBudget, RetryPolicy, StopReason, Verdict, budget, classify, error, observe,
    operation, profile, report, retry, schedule,
};
#[cfg(feature = "http")]
#[doc(inline)]
pub use reattempt_engine::{
    Http, ReplayBody, Retry, RetryLayer, TimedOut, body, check, deadline, fresh, hedge, linger, protocol,
};
#[cfg(feature = "http")]
#[doc(inline)]
pub use reattempt_peek_body::PeekBodyLayer;
#[cfg(all(feature = "http", any(feature = "opentelemetry", feature = "tracing")))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "opentelemetry", feature = "tracing"))))]
#[doc(inline)]
pub use reattempt_telemetry as telemetry;
#[cfg(feature = "http")]
#[doc(inline)]
pub use {
    reattempt_endpoints as endpoints, reattempt_fallback as fallback, reattempt_guard as guard, reattempt_guard::shed,
    reattempt_resume as resume,
};
