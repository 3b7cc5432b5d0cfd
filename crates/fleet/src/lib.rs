//! A retry budget that many processes share.
//!
//! A process's own budget does not count the retries of other processes. In an outage, each process starts with a full
//! bucket, so a large fleet's retries together overload a server that is about to recover. Before each retry, during
//! its delay, [`FleetBudget`] also asks a store that all processes share. The crate `reattempt-redis` provides a store
//! on Redis or Valkey, and re-exports this crate's items.
//!
//! | item | content |
//! |---|---|
//! | [`FleetBudget`] | the budget: this process decides first, then the store |
//! | [`BudgetStore`] | the trait for a store, with one method |
//! | [`MemoryStore`] | a store for tests |
//! | [`FleetEvent`], [`FleetStats`] | the events of a budget, and their counts |
//! | `FleetMetrics` | the events as OpenTelemetry instruments, behind the feature `opentelemetry` |
//! | [`rate`] | a rate limit that processes share: the guard, and the rule for its bucket |
//! | [`rule`] | the rule for a store's bucket, as a function over integers |
//!
//! ![Arrivals and successes over time: without retries, with a budget in each client, and with one for the fleet](https://raw.githubusercontent.com/reattempt/reattempt/main/docs/fleet.svg)
//!
//! [The example](https://github.com/reattempt/reattempt/tree/main/examples/fleet) runs a thousand clients in twenty
//! processes, each with one call every eight seconds, and a real Redis. With separate budgets the outage lasts ten
//! seconds longer. With the shared budget it does not, although the store is down for two seconds of it. Meanwhile only
//! clients whose retries succeed go on alone, so the peak is 1.2 times the load, as without retries, where separate
//! budgets reach 4.5.
//!
//! Use this crate directly to write your own store: apply [`rule::settle`] to the state of a key atomically.
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
