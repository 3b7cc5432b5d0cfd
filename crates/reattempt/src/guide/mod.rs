//! Pages for each kind of client: the type to store, the bounds to write, logs and metrics, testing, and turning
//! retries off.
//!
//! The examples use `tower` with its feature `util`.
//!
//! | page | client | versions |
//! |---|---|---|
//! | [`hyper`] | hyper-util's legacy client | hyper 1, hyper-util 0.1 |
//! | `reqwest`, behind its feature | `reqwest::Client` | reqwest 0.13 |
//! | `reqwest_middleware`, behind the feature `reqwest` | a `ClientWithMiddleware`, by a crate of its own | reqwest-middleware 0.5 |
//! | `tonic`, behind its feature | a tonic `Channel` under a generated client, boxed too | tonic 0.14 |
//! | [`axum`] | the outbound calls of an axum service | axum 0.8 |
//! | [`boxed`] | clients that are boxed, take one body type, or fail with a `BoxError` | tower 0.5 |
//! | [`generic`] | functions over any client | tower 0.5 |
//! | [`own_client`] | a client of your own type: a service, or a struct with methods | tower 0.5 |
//! | [`servers`] | several servers behind one client | tower 0.5, tonic 0.14 |
//! | [`logs`] | reports, observers, counters and instruments | tracing 0.1, opentelemetry 0.33 |
//! | [`coming_from`] | other libraries: their settings and ours | tower, reqwest-retry, backoff, backon, tokio-retry … |
//! | [`testing`] | tests of retries and guards under a paused clock; settings that turn retries off | tokio 1 |

#[doc = include_str!("axum.md")]
pub mod axum {}

#[doc = include_str!("boxed.md")]
pub mod boxed {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

#[doc = include_str!("generic.md")]
pub mod generic {}

#[doc = include_str!("hyper.md")]
pub mod hyper {}

#[doc = include_str!("logs.md")]
pub mod logs {}

#[doc = include_str!("own_client.md")]
pub mod own_client {}

#[cfg(feature = "reqwest")]
#[doc = include_str!("reqwest.md")]
pub mod reqwest {}

#[cfg(feature = "reqwest")]
#[doc = include_str!("reqwest_middleware.md")]
pub mod reqwest_middleware {}

#[doc = include_str!("servers.md")]
pub mod servers {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[cfg(feature = "tonic")]
#[doc = include_str!("tonic.md")]
pub mod tonic {}
