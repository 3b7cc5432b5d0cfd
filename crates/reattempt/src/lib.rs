//! Retries for every HTTP and gRPC client that is a tower `Service`.
//!
//! Wrap a client in one layer. Transient failures are retried when that is safe, and a retry budget protects a
//! struggling server. A request that may have been processed is not repeated unless that is safe. `Retry-After` is
//! obeyed, delays are jittered, and the caller gets the last real outcome with a report.
//!
//! ```
//! use http_body_util::Full;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::RetryLayer;
//! use tower::ServiceBuilder;
//!
//! # fn client() -> impl Sized {
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::http())
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # type Body = Full<bytes::Bytes>;
//! # use bytes;
//! # fn check<S: tower::Service<http::Request<Body>>>(service: S) -> S { service }
//! # check(client)
//! # }
//! ```
//!
//! | feature | effect | versions | default |
//! |---|---|---|---|
//! | `hyper` | recognises the errors of hyper and hyper-util clients, h2 included | hyper 1, hyper-util 0.1, h2 0.4 | on |
//! | `reqwest` | retries `reqwest::Client` as a service of `reqwest::Request` | reqwest 0.13 | off |
//! | `grpc` | gRPC over any HTTP/2 client: codes, trailers, service configs | – | off |
//! | `tonic` | retries a tonic `Channel` under any generated client; implies `grpc` | tonic 0.14 | off |
//! | `tower-http` | takes classifiers written for tower-http, and knows its `FollowRedirect` | tower-http 0.7 | off |
//! | `tracing` | an observer that writes `tracing` events | tracing 0.1 | off |
//! | `opentelemetry` | measures gRPC calls and their attempts, by gRPC's own instruments; implies `tonic` | opentelemetry 0.33 | off |
//!
//! | to find | see |
//! |---|---|
//! | a page for each kind of client: the type to store, the bounds to write, tests | [`guide`] |
//! | every setting of retries with its default | [`RetryPolicy`] |
//! | what is retried, replayed and read of HTTP | [`Http`] |
//! | delays, and well-known ways to retry by name | [`schedule`], [`profile`] |
//! | the retry budget | [`RetryBudget`] |
//! | the options of one call | [`CallOptions`] |
//! | the place of the layer among others | [`order`] |
//! | slow calls sent once more | [`HedgeLayer`] |
//! | all calls slowed to what a server takes | [`PaceLayer`] |
//! | any other operation | [`retry()`] |

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "grpc"),
    allow(
        dead_code,
        unused_imports,
        reason = "the protocol with method overrides and trailers is absent"
    )
)]

mod call;
mod error_mode;
mod hedge;
mod operation;
mod pace;
mod protocol;
#[cfg(feature = "reqwest")]
mod reqwest_ext;
mod retry;
mod send;

#[cfg(feature = "grpc")]
pub mod grpc;
pub mod guide;
pub mod order;
pub mod profile;
pub mod schedule;

/// The README's example, compiled.
#[cfg(all(doctest, feature = "hyper", feature = "reqwest", feature = "tonic"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

pub use call::deadline::Deadline;
pub use call::hook::AttemptContext;
#[cfg(feature = "tracing")]
pub use call::observe::TracingObserver;
pub use call::observe::{Event, Observer};
pub use call::options::CallOptions;
pub use call::outcome::Outcome;
pub use call::pace_refused::{PaceRefusal, PaceRefused};
pub use call::random::CallRandom;
pub use call::report::{AttemptOutcome, AttemptReport, Report, ReportSlot};
pub use call::request_view::RequestView;
pub use call::timed_out::{RefusedResponse, TimeLimit, TimedOut};
pub use call::wishes::{AttemptNumber, NestedMarker, RetrySafety};
pub use error_mode::{Answered, BoxedError, ErrorMode, OwnError};
#[cfg(feature = "grpc")]
pub use grpc::service_config::{Configured, ConfiguredFuture, ServiceConfigLayer};
#[cfg(feature = "grpc")]
pub use grpc::{
    Grpc, GrpcBody, GrpcCode, InboundDeadline, InboundDeadlineLayer, PeekTrailers,
    PeekTrailersBody, PeekTrailersFuture, PeekTrailersLayer,
};
#[cfg(feature = "opentelemetry")]
pub use grpc::{
    GrpcMetrics, GrpcMetricsLayer, Measured, MeasuredBody, MeasuredFuture, RetryMetric,
};
pub use hedge::{Extended, Hedge, HedgeFuture, HedgeLayer, HedgePolicy, HedgeReport, Hedgeable};
pub use operation::{
    IntoOperationPolicy, Operations, RetryError, Retrying, RetryingFuture, is_transient_io_error,
    is_transient_sqlstate, retry, retry_blocking,
};
pub use pace::{Pace, PaceFuture, PaceLayer, Paced};
#[cfg(feature = "reqwest")]
pub use protocol::SavedReqwest;
#[cfg(feature = "tower-http")]
pub use protocol::TowerHttpClassifier;
pub use protocol::{
    AttemptKind, ClassifyOutcome, CloneRequest, DrainBody, Http, NextAttempt, Origin, Protocol,
    Replay, Saved, SavedClone, SavedRequest,
};
pub use reattempt_control::RetryBudget;
pub use reattempt_core::{
    Account, Budget, Call, CallEnd, Classification, Classifier, ConfigError, Decision,
    FailedAttempt, Failure, FailureKind, Limits, PaidRetry, Permit, PermitIssuer, ServerHint,
    SpendOnly, StopReason, Terms, Undone, Unlimited, Verdict,
};
pub use reattempt_http::{
    Hinted, Hints, IDEMPOTENCY_KEY, is_repeatable, new_idempotency_key, verdict_of_error,
    verdict_of_status,
};
pub use reattempt_replay::{ReplayBody, ReplayCharge, ReplayError, ReplayLimits, ReplayMemory};
#[cfg(feature = "reqwest")]
pub use reqwest_ext::ReqwestExt;
pub use retry::policy::{Profile, RetryPolicy, StockDelay};
pub use retry::{Retry, RetryFuture, RetryLayer};
pub use send::check;
