//! A retry budget that many processes share.
//!
//! A budget of one process does not see the retries of the others. In an outage each process finds a full bucket, and
//! the retries of a large fleet together overload the server that is about to recover. Before each retry,
//! [`FleetBudget`] also asks a store that all processes share. It does so while the delay before the retry runs. The
//! crate `reattempt-redis` has a store on Redis or Valkey, and exports this crate's items.
//!
//! | item | content |
//! |---|---|
//! | [`FleetBudget`] | the budget: this process decides first, then the store |
//! | [`BudgetStore`] | the contract of a store: one method |
//! | [`MemoryStore`] | a store for tests |
//! | [`FleetEvent`], [`FleetStats`] | the events of a budget, and their counts |
//! | `FleetMetrics` | the events as OpenTelemetry instruments, behind the feature `opentelemetry` |
//! | [`rate`] | a rate limit that processes share: the guard, and the rule of its bucket |
//! | [`rule`] | the rule of a store's bucket, a function over integers |
//!
//! Use this crate alone to write your own store: apply [`rule::settle`] to the state of a key in one atomic step.
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod ask;
mod budget;
#[doc(hidden)]
pub mod courier;
#[doc(hidden)]
pub mod course;
mod destination;
mod key;
mod member;
#[cfg(feature = "opentelemetry")]
mod metrics;
pub mod rate;
mod rate_rule;
mod report;
pub mod rule;
mod stats;
mod store;
mod sync;
mod table;
mod task;

pub use budget::FleetBudget;
#[cfg(feature = "opentelemetry")]
#[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
pub use metrics::FleetMetrics;
pub use stats::{FleetEvent, FleetStats};
pub use store::{BoxError, BudgetStore, MemoryStore, RateStore, Settling, Taking};
