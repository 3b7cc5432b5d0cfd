//! Downloads that resume after a broken connection.
//!
//! A retry layer is done once it has the response head. If the connection breaks in the middle of a large body, the
//! caller is left with half a file and an error. [`ResumeLayer`] requests the missing part and continues the body, so
//! that the caller reads one body without a gap. It is a separate layer, and downloads are resumed only if you add it.
//!
//! Put it **outside** the retry layer, guards and endpoints; [`order`][order] shows its position among other
//! layers. Each resume is then a separate call to the inner layers: guards admit it, and a set of endpoints picks a
//! server for it.
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
//! The guide has [a page on downloads][downloads].
//!
//! # What is resumed
//!
//! Parts of two versions of a file must never be joined. Only a body that can be continued safely is therefore resumed;
//! any other body passes through unchanged. [`ResumePoint`] implements these rules:
//!
//! | part | rule |
//! |---|---|
//! | request | a GET without a body, a precondition (`If-None-Match`, …) or `Upgrade`. It may have its own `Range` with one part (RFC 9110 §14.2) |
//! | response | 200, or 206 to the request's own `Range`, with `Content-Length`, and without `Content-Encoding` and `Transfer-Encoding` |
//! | validator | a strong `ETag`, or, if there is no `ETag`, a `Last-Modified` at least 60 s before `Date`; [`tags_only`](ResumeLayer::tags_only) excludes dates |
//! | the break | an error that [`Http`](reattempt_engine::Http) classifies as a lost connection, or an end before `Content-Length` |
//!
//! The request for the rest is the caller's request with `Range: bytes=k-m`, the validator in `If-Range`, and
//! `Accept-Encoding: identity`. A body that answers the caller's own `Range` is continued within that range.
//!
//! | response to this request, with the same validator and the same total length | effect |
//! |---|---|
//! | 206 with the missing range, or with its beginning | the body continues; what is still missing is requested again |
//! | 206 with a range that begins earlier | the bytes before the first missing one are skipped, up to [`max_skip`](ResumeLayer::max_skip) |
//! | 206 with `bytes k-m/*`, or without the date | the body continues, because length and validator are known (RFC 9110 §15.3.7) |
//! | 200 | the server ignores ranges; the first bytes are skipped, up to `max_skip`, once for each body |
//!
//! | any other response | effect |
//! |---|---|
//! | a retryable failure, such as 503 or a lost connection | another resume follows after a delay |
//! | 200 or 206 of another version, 416, another total, several parts, an encoding | the body fails with [`NotContinued`] |
//!
//! A part with fewer than 64 KiB that ends before the missing bytes do counts as a break. A server can therefore not
//! cause one request for each byte.
//!
//! [`NotContinued`] contains the [`Mismatch`], with the numbers that differ; its source is the break. If no answer came
//! in time, the body fails with the break itself. The break is the inner body's error, boxed. If the body ended before
//! `Content-Length` without an error, it is a [`BrokenOff`]. hyper's HTTP/2 client reports such an end if the server
//! resets the stream with NO_ERROR.
//!
//! # The end of the body
//!
//! Each part is polled to its end, so that an inner layer can check its bytes. After the last byte, an error that
//! `Http` classifies as a lost connection or a timeout has no effect, because the length proves that the body is
//! complete. Any other error reaches the caller. A part that continues the body is polled for at most five seconds
//! after its last byte. Nothing that changes bytes belongs inside this layer.
//!
//! With the feature `digest`, `ResumeLayer::verify_digest` compares the joined body with the digest that the server
//! states (RFC 9530).
//!
//! # From where an earlier process stopped
//!
//! A [`Checkpoint`] consists of the length of a file on disk, and the validator that was stored beside it. It sets the
//! headers of the caller's request, and reads the head of the response:
//!
//! ```
//! use http::{HeaderValue, Request, Response};
//! use reattempt::resume::{Checkpoint, Continuation};
//!
//! # fn example(response: Response<()>) -> Result<(), Box<dyn std::error::Error>> {
//! let checkpoint = Checkpoint::new(400, HeaderValue::from_static("\"7\""))?;
//! let mut request = Request::get("http://one.example/film").body(())?;
//! checkpoint.write_to(request.headers_mut());
//! // The request is sent through a `ResumeLayer`, so the body is resumed when it breaks again.
//! match checkpoint.check(response.status(), response.headers())? {
//!     Continuation::Rest(_) => println!("append the body"),
//!     Continuation::Whole { .. } => println!("truncate the file, and write the body from its start"),
//!     Continuation::Complete => println!("nothing is missing"),
//!     _ => {}
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Decoders, replicas and redirects
//!
//! If an inner layer decodes the response, the body is not resumed, because decoding removes `Content-Length`. Turn off
//! reqwest's features `gzip`, `brotli`, `zstd` and `deflate`, or request `Accept-Encoding: identity`. Decoders outside
//! this layer do not help, because encoded responses are not resumed either.
//!
//! A validator identifies a version of one resource. Replicas behind [endpoints][endpoints] count as one
//! resource, so a resume may go to another replica with the same strong validator. If this layer is directly outside
//! the endpoints, a resume prefers a replica that was not tried since the last new byte. A retry layer in between hides
//! which replica sent the first part; that replica is then avoided only because of its recorded failures. Content from
//! a [fallback][fallback] is never joined with content from the server.
//!
//! If the inner client follows redirects, each request for the rest starts at the address that the caller requested,
//! and follows the redirect anew. The final address may differ, as that of a signed URL does, if the entity tag and
//! the total length are the same. With a date, or without a total length, the final path and query must be the same
//! each time. The scheme, host and port must then match too, unless the path and query are the requested ones. The
//! address is known for reqwest, and for tower-http's `FollowRedirect` with the feature `tower-http`. If two layers
//! follow redirects, only the final address of the outer one is visible, so use only one such layer. The layer sends
//! the caller's headers to the caller's address only; the client's redirect rules decide which of them go further.
//!
//! # Limits
//!
//! | limit | default | |
//! |---|---|---|
//! | consecutive resumes without a new byte | 5 | [`max_attempts`](ResumeLayer::max_attempts) counts the broken attempt too |
//! | time from a break to the head of the response that continues the body | 30 s | [`max_elapsed`](ResumeLayer::max_elapsed) |
//! | budget | [`RetryBudget::cautious`](reattempt_engine::RetryBudget::cautious) for each destination | the budget must grant every resume |
//!
//! A new byte resets the count, the time and the delays. The budget records a resume as a success after it has received
//! 64 KiB or the whole rest. The download therefore fails if it breaks after each byte, but long downloads over a poor
//! network continue.
//!
//! The request's [`CallOptions`](reattempt_engine::CallOptions) apply as in a retry layer, except `attempt_timeout`.
//! [`Resume::with_options`] sets them for a handle.
//!
//! The caller's [`Deadline`](reattempt_engine::Deadline) ends every wait for a resume. It does not interrupt a body
//! that stalls. A timeout of the inner client, or an inner body with a timeout, turns a stall into a break. The timeout
//! of a `reqwest::Request` limits the whole download with all its parts. `ClientBuilder::timeout` limits each part.
//!
//! An inner [`RetryLayer`](reattempt_engine::RetryLayer) does not retry a resume, because the attempts would multiply:
//! the resume's request has [`never_retry`](reattempt_engine::CallOptions::never_retry). reqwest requests cannot carry
//! that option, so let both layers share one budget.
//!
//! # Report
//!
//! If a body broke, the call's [`ReportSlot`](reattempt_engine::report::ReportSlot) receives a new report when the body
//! ends. This report lists the attempt that broke, and each resume as an attempt. Observers are notified of the same
//! events as in a retry layer. A dropped body has no report.
//!
//! # Trailers
//!
//! The trailers of the first response are returned. Those of a later part are dropped, because they describe only that
//! part.
//!
//! # Without a layer
//!
//! [`ResumeLayer::resumed`] makes any client's response resumable, with a function that sends the request for the rest.
//!
//! [order]: https://docs.rs/reattempt/latest/reattempt/order/index.html
//! [downloads]: https://docs.rs/reattempt/latest/reattempt/guide/downloads/index.html
//! [endpoints]: https://docs.rs/reattempt/latest/reattempt/endpoints/index.html
//! [fallback]: https://docs.rs/reattempt/latest/reattempt/fallback/index.html

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod broken_off;
#[cfg(feature = "digest")]
mod digest;
mod layer;
mod message;
#[cfg(feature = "reqwest")]
mod reqwest;
mod resumption;
mod service;
mod settings;
mod source;

pub use body::ResumeBody;
pub use broken_off::{BrokenOff, NotContinued};
#[cfg(feature = "digest")]
pub use digest::DigestMismatch;
pub use layer::ResumeLayer;
pub use message::ResumableRequest;
#[doc(hidden)]
pub use message::{ResumableResponse, ResumedAs};
pub use reattempt_replay::resume::{Checkpoint, Continuation, Mismatch, Part, ResumePoint, WeakValidator};
pub use service::{ResponseFuture, Resume};
pub use source::{RestFuture, ServiceSource, Source};
