//! The engine of the crate [`reattempt`](https://docs.rs/reattempt): how a call is judged, retried and hedged.
//!
//! **Depend on `reattempt`**, which exports everything here under the same paths, and all layers. This crate is apart
//! so that each layer can be a small crate of its own, which imports what layers share from one hidden module, `wall`.

#![forbid(unsafe_code)]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(feature = "grpc"),
    allow(dead_code, unused_imports, reason = "the protocol with method overrides and trailers is absent")
)]
#![cfg_attr(
    not(feature = "http"),
    allow(unnameable_types, unreachable_pub, reason = "the modules that export what layers share are absent")
)]

#[cfg(feature = "http")]
mod accessors;
mod call;
#[cfg(feature = "http")]
mod error_mode;
mod policy;
#[cfg(feature = "reqwest-0-12")]
#[cfg_attr(docsrs, doc(cfg(feature = "reqwest-0-12")))]
pub mod reqwest_0_12;
#[cfg(feature = "reqwest")]
mod reqwest_ext;
#[cfg(feature = "http")]
mod send;
#[cfg(feature = "http")]
mod shared;

#[cfg(feature = "http")]
pub mod body;
pub mod budget;
pub mod classify;
#[cfg(feature = "http")]
pub mod deadline;
pub mod error;
#[cfg(feature = "http")]
#[doc(hidden)] // its path is `reattempt::fallback`
pub mod fallback;
#[cfg(feature = "http")]
pub mod fresh;
#[cfg(feature = "grpc")]
pub mod grpc;
#[cfg(feature = "http")]
pub mod hedge;
#[cfg(feature = "http")]
pub mod linger;
pub mod observe;
pub mod operation;
pub mod profile;
#[cfg(feature = "http")]
pub mod protocol;
pub mod report;
pub mod retry;
pub mod schedule;
#[doc(hidden)]
pub mod wall;

pub use call::deadline::Deadline;
pub use call::options::CallOptions;
pub use call::report::Report;
#[cfg(feature = "http")]
pub use call::timed_out::TimedOut;
pub use operation::retrying::retry;
pub use policy::RetryPolicy;
#[cfg(feature = "http")]
pub use protocol::settings::Http;
pub use reattempt_control::RetryBudget;
pub use reattempt_core::{StopReason, Verdict};
#[cfg(feature = "http")]
pub use reattempt_replay::ReplayBody;
#[cfg(feature = "reqwest")]
pub use reqwest_ext::ReqwestExt;
#[cfg(feature = "http")]
pub use retry::layer::RetryLayer;
#[cfg(feature = "http")]
pub use retry::service::Retry;
#[cfg(feature = "http")]
pub use send::check;
