//! Response bodies that are read as part of their attempt.
//!
//! A client returns a response as soon as its head has arrived. If the body then breaks, the caller gets an error that
//! no retry layer has seen. And some servers report in the body what others report in the status: S3 an error behind a
//! 200, DynamoDB a throttle behind a 400. [`PeekBodyLayer`] reads short bodies before it returns the response:
//!
//! ```
//! # #[cfg(feature = "reqwest")] {
//! use reattempt::{PeekBodyLayer, ReqwestExt, RetryLayer};
//! use tower::ServiceBuilder;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let http = reqwest::Client::new();
//! let client = ServiceBuilder::new()
//!     .layer(RetryLayer::http())
//!     .layer(PeekBodyLayer::new())
//!     .service(http.clone());
//! // If the body breaks, the request is sent again.
//! let index = http.get("http://one.example/index.json").send_with(&client).await?.text().await?;
//! # let _ = index;
//! # Ok(())
//! # }
//! # }
//! ```
//!
//! Put the layer **inside** retries, hedges, guards and endpoints. Then a body that breaks is a failed attempt for all
//! of them: a breaker counts it, endpoints avoid the server, and a hedged call waits for the first whole answer. The
//! limits on the time of an attempt and of a call cover the body too.
//!
//! # What is read
//!
//! | body | |
//! |---|---|
//! | empty; a 1xx; the response to a CONNECT | handed on at once |
//! | of a known length above [`up_to`](PeekBodyLayer::up_to) | handed on at once |
//! | of a known length within it | read to its end |
//! | of unknown length, with the content type of a stream: event streams, lines or sequences of JSON, gRPC, Connect, Amazon's event streams, multipart | handed on at once |
//! | of unknown length otherwise | read for [`within`](PeekBodyLayer::within), up to `up_to` |
//!
//! Beyond a bound, the head decides, as it does without the layer. The caller then gets what was read, followed by the
//! rest. Nothing is held twice. Frames, trailers and errors are passed on unchanged.
//!
//! # What happens
//!
//! | body | the attempt |
//! |---|---|
//! | breaks behind a success | failed like a lost connection. A request that may be repeated is sent again; the caller of the last attempt gets its head, its bytes and the client's own error |
//! | breaks behind a failure | is judged by its head |
//! | whole, and a [rule](PeekBodyLayer::classify) judges it | has the rule's verdict |
//! | whole otherwise | is judged by its head |
//!
//! A break is never a proof that nothing was processed, so a POST without a key is sent once. The classifiers of the
//! call and of its [`Http`](reattempt_engine::Http) precede the rules on bodies, which precede
//! [`on_status`](reattempt_engine::Http::on_status), profiles and the table of statuses. A delay that a rule asks for
//! precedes that of the headers.
//!
//! A refused response that was read needs no drain, so its connection is used again.
//!
//! [`choose`](PeekBodyLayer::choose) sets other bounds and rules by request. A policy file can contain them
//! (`reattempt-policy-file`).
//!
//! # Limits
//!
//! - A body without a length ends with its connection (HTTP/1.0). It breaks only if that is reset, or if TLS shows the
//!   early end.
//! - A compressed body is judged only if a decoder is inside the layer, and never by a rule if it still has a
//!   `content-encoding`.
//! - A break beyond the bounds is the caller's, as without the layer: the call counts as a success, and no event
//!   reports it. A guard outside gets the end of the body, and a set of endpoints counts the break.
//! - Only whole responses are judged. If a part of a batch was refused, that part is the caller's.
//! - Larger downloads are continued by [`resume`][resume], outside this layer.
//! - Guards and endpoints measure the time until a short body has ended.
//!
//! [resume]: https://docs.rs/reattempt/latest/reattempt/resume/index.html

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod future;
mod layer;
mod message;
#[cfg(feature = "reqwest")]
mod reqwest;
mod service;
mod settings;

pub use body::PeekedBody;
pub use future::ResponseFuture;
pub use layer::PeekBodyLayer;
pub use message::{PeekableRequest, PeekableResponse};
pub use service::PeekBody;
