//! Guide pages for each kind of client, for logs and metrics, and for tests.
//!
//! A page names the features that its examples need. tower's feature `util` comes with reattempt.
//!
//! | page | client | versions |
//! |---|---|---|
//! | [`hyper`] | hyper-util's legacy client | hyper 1, hyper-util 0.1 |
//! | `reqwest`, behind its feature | `reqwest::Client` | reqwest 0.13 |
//! | `reattempt::reqwest_0_12`, behind the feature `reqwest-0-12` | `reqwest::Client` of the version before | reqwest 0.12 |
//! | `reqwest_middleware`, behind the feature `reqwest` | a `ClientWithMiddleware`, with a separate crate | reqwest-middleware 0.5, astral-reqwest-middleware 0.5 |
//! | [`blocking`] | `reqwest::blocking` and `ureq`, without a runtime | reqwest 0.13, ureq 3.5 |
//! | `tonic`, behind its feature | a tonic `Channel` below a generated client, boxed or not | tonic 0.14 |
//! | [`axum`] | the outbound calls of an axum service, and a page of what is in force | axum 0.8 |
//! | [`boxed`] | clients that are boxed, take one body type, or fail with a `BoxError` | tower 0.5 |
//! | [`downloads`] | large downloads that continue after a broken connection | hyper 1, reqwest 0.13 |
//! | [`uploads`] | large uploads that are sent again after a failure, without keeping them | hyper 1, reqwest 0.13, tonic 0.14 |
//! | [`generic`] | functions that are generic over the client | tower 0.5 |
//! | [`own_client`] | your own client type: a service, or a struct with methods | tower 0.5 |
//! | [`servers`] | several servers behind one client | tower 0.5, tonic 0.14 |
//! | [`kubernetes`] | pods behind one client: sources, sizes, zones, rolling restarts, probes, telemetry; EndpointSlices with a separate crate | tower 0.5, tonic 0.14 |
//! | [`server_hints`] | what servers say: waits, quotas, pauses for all calls, polling, and each service in one table | tower 0.5 |
//! | [`lost_answers`] | writes whose answer was lost: 412, 409 and 404 after a retry; other limits for some failures | tower 0.5 |
//! | [`policy_files`] | policies from a file, which operators can change while the program runs, with a separate crate | tower 0.5 |
//! | [`logs`] | reports, observers, counters and instruments | tracing 0.1, opentelemetry 0.33 |
//! | [`runtimes`] | `retry()` in runtimes other than tokio, and on wasm | async-io 2 |
//! | [`coming_from`] | migration from other libraries: their settings and ours | tower, reqwest-retry, backoff, backon, tokio-retry … |
//! | [`testing`] | tests of retries and guards under a paused clock; how to turn retries off | tokio 1 |

#[doc = include_str!("axum.md")]
pub mod axum {}

#[doc = include_str!("blocking.md")]
pub mod blocking {}

#[doc = include_str!("boxed.md")]
pub mod boxed {}

#[doc = include_str!("coming_from.md")]
pub mod coming_from {}

#[doc = include_str!("downloads.md")]
pub mod downloads {}

#[doc = include_str!("generic.md")]
pub mod generic {}

#[doc = include_str!("hyper.md")]
pub mod hyper {}

#[doc = include_str!("kubernetes.md")]
pub mod kubernetes {}

#[doc = include_str!("logs.md")]
pub mod logs {}

#[doc = include_str!("lost_answers.md")]
pub mod lost_answers {}

#[doc = include_str!("own_client.md")]
pub mod own_client {}

#[cfg(feature = "reqwest")]
#[doc = include_str!("reqwest.md")]
pub mod reqwest {}

#[cfg(feature = "reqwest")]
#[doc = include_str!("reqwest_middleware.md")]
pub mod reqwest_middleware {}

#[doc = include_str!("policy_files.md")]
pub mod policy_files {}

#[doc = include_str!("runtimes.md")]
pub mod runtimes {}

#[doc = include_str!("server_hints.md")]
pub mod server_hints {}

#[doc = include_str!("servers.md")]
pub mod servers {}

#[doc = include_str!("testing.md")]
pub mod testing {}

#[cfg(feature = "tonic")]
#[doc = include_str!("tonic.md")]
pub mod tonic {}

#[doc = include_str!("uploads.md")]
pub mod uploads {}
