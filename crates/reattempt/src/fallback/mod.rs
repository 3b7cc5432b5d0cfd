//! Fallbacks: a response in place of a call that has failed for good.
//!
//! Put [`FallbackLayer`] **outside** all other layers. It replaces an outcome after retries, hedges and guards have
//! given up, so no budget, breaker or limit records a fallback.
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
//! | 5xx, 408, 425, 429, a lost connection, a time limit | yes |
//! | a refusal of a guard | yes |
//! | any other 4xx | only with [`on_permanent`](FallbackLayer::on_permanent) |
//! | an error of the caller's own request body | no |
//! | a call that its caller drops | no |
//!
//! The caller's own classification has precedence, as for retries.
//!
//! | item | content |
//! |---|---|
//! | [`FallbackLayer`], [`Fallback`], [`ResponseFuture`] | the middleware |
//! | [`Failed`], [`FellBack`] | the failure, and the mark of the response that replaces it |
//! | [`Backup`] | another service as the fallback |

mod body;
mod failed;
mod future;
mod layer;
mod protocol;
#[cfg(feature = "reqwest")]
mod reqwest;
mod service;
mod shared;
mod source;

pub use body::FallbackBody;
pub use failed::{Failed, FellBack};
pub use future::ResponseFuture;
pub use layer::FallbackLayer;
pub use protocol::Replaceable;
pub use service::Fallback;
pub use source::{Backup, Replacement, Source};
