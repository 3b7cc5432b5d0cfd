//! The middleware for `astral-reqwest-middleware` 0.5, the fork that uv, rattler and pixi use.
//!
//! The fork is imported as `reqwest_middleware`, too, but its `Middleware` is another trait. So these are types of
//! their own, from the same source and with the same tests.
//!
//! ```
//! # use reqwest_middleware_astral as reqwest_middleware;
//! use reattempt::RetryPolicy;
//! use reattempt_reqwest_middleware::astral::ReattemptMiddleware;
//! use reqwest_middleware::ClientBuilder;
//!
//! # fn main() -> Result<(), reqwest::Error> {
//! // reqwest's own retries would multiply with the layer's.
//! let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
//! let client = ClientBuilder::new(http)
//!     .with(ReattemptMiddleware::new(RetryPolicy::http().max_attempts(4)))
//!     .build();
//! # Ok(())
//! # }
//! ```

use ::reqwest_middleware_astral as api;

#[path = "chain.rs"]
mod chain;
#[path = "error.rs"]
mod error;
#[path = "middleware.rs"]
mod middleware;

pub use chain::{ChainLayer, ChainService, WithOptions};
pub use error::{CallError, ChainError};
pub use middleware::ReattemptMiddleware;
