//! Fallbacks: a response to return when all retries of a call have failed.
//!
//! Put [`FallbackLayer`] **outside** all other layers. It acts after retries, hedges and guards have given up, so no
//! budget, breaker or limit records a fallback.
//!
//! ```
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Empty};
//! use reattempt::fallback::{FallbackLayer, FellBack};
//! use reattempt::{ReplayBody, RetryLayer};
//! use tower::{BoxError, ServiceBuilder};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let client = ServiceBuilder::new()
//!     .layer(FallbackLayer::http(|_failed| Some(Response::new(Bytes::from_static(b"[]")))))
//!     .layer(RetryLayer::http())
//!     .service_fn(async |_: Request<ReplayBody<Empty<Bytes>>>| {
//!         Response::builder().status(503).body(Empty::<Bytes>::new())
//!     });
//! let response = client.send(Request::get("http://one.example/offers").body(Empty::new())?).await?;
//! let mark = response.extensions().get::<FellBack>().ok_or("the server is down")?;
//! assert_eq!(mark.failed().to_string(), "503 Service Unavailable");
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "[]");
//! # Ok(())
//! # }
//! ```
//!
//! | outcome of the call | fallback |
//! |---|---|
//! | a success, a redirect | no |
//! | 5xx except 501 and 505, 408, 425, 429, a lost connection, a timeout, any other error that is not listed below | yes |
//! | a guard's refusal | yes |
//! | 501, 505, any other 4xx | only with [`on_permanent`](FallbackLayer::on_permanent) |
//! | an error in the caller's own request body | no |
//! | a call that the caller dropped | no |
//!
//! The caller's own classification takes precedence, as it does for retries.
//!
//! A [`Backup`] is another server. Once it is called, the call's outcome is the backup's: a response marked with
//! [`FellBack`], or a [`BackupFailed`]. Both contain the original outcome. Neither counts as proof, in other layers of
//! this crate, that the request was not processed.
//!
//! # The last good response
//!
//! The layer does not store responses. A body is a stream, which the caller might not read to its end. To store it, the
//! layer would have to delay every body until it is complete. Only the caller knows which bodies are small, and how
//! long each may be reused. The caller therefore stores the bodies that it has read, and the fallback returns them:
//!
//! ```
//! use std::sync::{Arc, Mutex};
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::{BodyExt, Empty, Full};
//! use reattempt::fallback::{FallbackLayer, FellBack};
//! use reattempt::{ReplayBody, RetryLayer};
//! use tokio::time::Instant;
//! use tower::{BoxError, ServiceBuilder};
//!
//! /// The longest time for which a response stands in.
//! const STALE: Duration = Duration::from_secs(300);
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), BoxError> {
//! let last_good = Arc::new(Mutex::new(None::<(Instant, Bytes)>));
//! let kept = Arc::clone(&last_good);
//! let stale = move |_failed: &_| {
//!     let (read, offers) = kept.lock().ok()?.clone()?;
//!     (read.elapsed() < STALE).then(|| Response::new(offers))
//! };
//! # let http = tower::service_fn(|request: Request<ReplayBody<Empty<Bytes>>>| {
//! #     let (status, body) = if request.uri().path() == "/up" { (200, "[7]") } else { (503, "") };
//! #     std::future::ready(Response::builder().status(status).body(Full::<Bytes>::from(body)))
//! # });
//! let client = ServiceBuilder::new()
//!     .layer(FallbackLayer::http(stale))
//!     .layer(RetryLayer::http())
//!     .service(http);
//! let offers = async |request: Request<Empty<Bytes>>| {
//!     let response = client.send(request).await?;
//!     let fresh = response.status().is_success() && response.extensions().get::<FellBack>().is_none();
//!     let offers = response.into_body().collect().await?.to_bytes();
//!     if fresh && let Ok(mut last_good) = last_good.lock() {
//!         *last_good = Some((Instant::now(), offers.clone()));
//!     }
//!     Ok::<_, BoxError>(offers)
//! };
//! # let request = |path: &str| Request::get(format!("http://one.example{path}")).body(Empty::new());
//! # assert_eq!(offers(request("/up")?).await?, "[7]");
//! # assert_eq!(offers(request("/down")?).await?, "[7]", "the last good response");
//! # tokio::time::advance(STALE).await;
//! # assert_eq!(offers(request("/down")?).await?, "");
//! # Ok(())
//! # }
//! ```
//!
//! | item | content |
//! |---|---|
//! | [`FallbackLayer`], [`Fallback`], [`ResponseFuture`] | the middleware |
//! | [`Failed`], [`FellBack`], [`BackupFailed`] | the failure, the mark on a fallback response, and a backup's error |
//! | [`Backup`], [`SaveRequest`] | another service as the fallback, and the protocols that can save requests for it |

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod future;
#[cfg(feature = "grpc")]
mod grpc;
mod layer;
mod protocol;
#[cfg(feature = "reqwest")]
mod reqwest;
mod service;
mod shared;
mod source;

pub use future::ResponseFuture;
pub use layer::FallbackLayer;
#[doc(hidden)]
pub use protocol::Replaceable;
pub use service::Fallback;
#[doc(hidden)]
pub use source::Replacement;
pub use source::{Backup, SaveRequest, Source};

pub use reattempt_engine::fallback::{BackupFailed, Failed, FallbackBody, FellBack};
