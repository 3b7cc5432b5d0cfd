//! Downloads that continue after their connection broke.
//!
//! A retry layer's work ends with the head of the response. If the connection breaks in the middle of a large body, the
//! caller has half of a file and an error. [`ResumeLayer`] requests the missing rest and continues the body, so that
//! the caller reads one body without a gap. It is a separate layer, and downloads are resumed only if it is added.
//!
//! Put it **outside** the retry layer, guards and endpoints; [`order`](crate::order) shows its position among other
//! layers. Each resume is then a call to the inner layers: guards admit it, and a set of endpoints picks a server for
//! it.
//!
//! ```
//! use bytes::Bytes;
//! use http_body_util::Empty;
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use reattempt::resume::ResumeLayer;
//! use reattempt::{RetryBudget, RetryLayer, RetryPolicy};
//! use tower::ServiceBuilder;
//!
//! let budget = RetryBudget::default();
//! let client = ServiceBuilder::new()
//!     .layer(ResumeLayer::http().budget(budget.clone()))
//!     .layer(RetryLayer::new(RetryPolicy::http().budget(budget)))
//!     .service(Client::builder(TokioExecutor::new()).build_http());
//! # reattempt::check::<http::Request<Empty<Bytes>>, _>(&client);
//! ```
//!
//! [The guide](crate::guide::downloads) has a page for users.
//!
//! # What is resumed
//!
//! Two versions of a file must never be joined. So only a body that can be continued safely is resumed; any other
//! passes through unchanged. [`ResumePoint`] has the rules.
//!
//! | part | rule |
//! |---|---|
//! | request | a GET without a body, and without its own `Range`, `If-Range` or precondition (`If-None-Match`, …) |
//! | response | 200 with `Content-Length`, and without `Content-Encoding` and `Transfer-Encoding` |
//! | validator | a strong `ETag`; without any `ETag`, a `Last-Modified` at least 60 s before `Date` |
//! | the break | an error that [`Http`](crate::Http) classifies as a lost connection, or an end before `Content-Length` |
//!
//! The request for the rest repeats the caller's request, with `Range: bytes=k-`, the validator in `If-Range`, and
//! `Accept-Encoding: identity`.
//!
//! | its response | effect |
//! |---|---|
//! | 206 with the same validator, and with exactly the missing range of the same total | the body continues |
//! | a retryable failure, such as 503 or a lost connection | the next resume, after a delay |
//! | anything else: 200, 416, another validator, another range, several parts, an encoding | the caller gets the break |
//!
//! The caller gets the break as it was: the inner body's error, boxed. An end before `Content-Length` is a
//! [`BrokenOff`]. hyper's HTTP/2 client reports such an end if the server resets the stream with NO_ERROR.
//!
//! If a layer below decodes the response, it is not resumed, because decoding removes `Content-Length`. So turn off
//! reqwest's features `gzip`, `brotli`, `zstd` and `deflate`, or request `Accept-Encoding: identity`. A decoder outside
//! this layer never gets a resumed body, because an encoded response is not resumed.
//!
//! A validator identifies a version of one resource. Replicas behind [endpoints](crate::endpoints) are one resource, so
//! a resume may go to another replica with the same strong validator. It prefers a replica that was not tried since the
//! last new byte, if this layer is directly above the endpoints. A retry layer in between keeps the first pick to
//! itself; then only that replica's failures count against it. The content of a
//! [fallback](crate::fallback) and that of the server are never joined.
//!
//! If the inner client follows redirects, the final path and query must be the same again. The scheme, host and port
//! are compared too, unless the path and query are those that the caller requested. That is visible for reqwest, and
//! for tower-http's `FollowRedirect` with the feature `tower-http`. Four consequences:
//!
//! - A redirect to the same path on another host looks like the choice of another replica, so its part is joined.
//! - Over reqwest, replicas behind endpoints continue each other only if endpoints leave the path as requested.
//! - Of two layers that follow redirects, only the outer one's address is visible. So use one.
//! - A redirect to a signed URL, with another query each time, ends the download. Request the final URL instead.
//!
//! # Limits
//!
//! | limit | default | |
//! |---|---|---|
//! | resumes in a row without a new byte | 5 | [`max_attempts`](ResumeLayer::max_attempts) counts the broken attempt too |
//! | time from a break to the head of the response that continues the body | 30 s | [`max_elapsed`](ResumeLayer::max_elapsed) |
//! | budget | [`RetryBudget::cautious`](crate::RetryBudget::cautious) for each destination | every resume takes a permit |
//!
//! A new byte resets the count, the time and the delays. For the budget, a resume succeeds if it brought 64 KiB or the
//! rest. So the download ends if the server breaks it after each byte, but long downloads over a poor network continue.
//!
//! The request's [`CallOptions`](crate::CallOptions) apply as in a retry layer, except `attempt_timeout`. Those of a
//! handle are set with [`Resume::with_options`].
//!
//! The caller's [`Deadline`](crate::Deadline) ends every wait for a resume. It does not interrupt a body that stalls:
//! a timeout of the inner client, or a body with a timeout below this layer, turns a stall into a break. The timeout of
//! a `reqwest::Request` limits the whole download, parts included. That of `ClientBuilder::timeout` limits each part.
//!
//! A resume is not retried again by a [`RetryLayer`](crate::RetryLayer) below, whose attempts would multiply:
//! its request has [`never_retry`](crate::CallOptions::never_retry). reqwest's requests cannot carry that option, so
//! share one budget there.
//!
//! # Report
//!
//! If a body broke, the call's [`ReportSlot`](crate::report::ReportSlot) receives a new report at the end of the body:
//! the attempt that broke, and each resume as an attempt. Observers get the same events as from a retry layer. If the
//! body is dropped, there is no report.
//!
//! # Trailers
//!
//! The trailers of the first response are returned. Those of a later part are dropped, because they describe only that
//! part.
//!
//! # Without a layer
//!
//! [`ResumeLayer::resumed`] makes the response of any client resumable: a function sends the request for the rest.

mod body;
mod broken_off;
mod layer;
mod message;
#[cfg(feature = "reqwest")]
mod reqwest;
mod resumption;
mod service;
mod settings;
mod source;

pub use body::ResumeBody;
pub use broken_off::BrokenOff;
pub use layer::ResumeLayer;
pub use message::ResumableRequest;
#[doc(hidden)]
pub use message::{ResumableResponse, ResumedAs};
pub use reattempt_replay::resume::{Mismatch, ResumePoint};
pub use service::{ResponseFuture, Resume};
pub use source::{RestFuture, ServiceSource, Source};
