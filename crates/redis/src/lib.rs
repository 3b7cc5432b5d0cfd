//! The retry budget of a whole fleet, on Redis or Valkey.
//!
//! A budget of one process does not see the retries of the others. [`FleetBudget`] asks a store that all processes
//! share before it grants a retry. This crate has the store, and exports all that a program needs. The
//! [`guide`] has the reasons to share a budget, and how to run its store.
//!
//! ```
//! use reattempt::RetryPolicy;
//! use reattempt_redis::{FleetBudget, RedisStore};
//!
//! # fn main() -> Result<(), reattempt_redis::RedisStoreError> {
//! let store = RedisStore::new("redis://budget.internal:6379")?;
//! let policy = RetryPolicy::http().budget(FleetBudget::new(store));
//! # Ok(())
//! # }
//! ```
//!
//! # Which server
//!
//! Redis from version 5, or Valkey: one server, a cluster (feature `cluster`) or sentinels (feature `sentinel`), with
//! TLS behind the feature `tls`. The user needs the commands `EVAL`, `EVALSHA`, `GET`, `SET` and `TIME`, and the keys
//! of the budget's prefix. Each destination has one key of some 80 bytes, which vanishes 40 s after its last retry.
//!
//! *Eviction is a refill*: a server that evicts keys forgets that a bucket is empty. Use a server of its own, or the
//! policy `noeviction` or `volatile-ttl`. [`warnings`](RedisStore::warnings) asks the server for it.
//!
//! # Faults
//!
//! A process starts, runs and stops without its store. Each fault below leaves a process to its own budget, as if there
//! were no fleet. The store is asked again once a second.
//!
//! | fault | effect |
//! |---|---|
//! | the server is down, refuses the password, is read-only, full or no Redis | each process decides alone |
//! | the server stalls, or its replies are late | each retry is held for 50 ms; after the first late answer one a second |
//! | a reply is lost | at most its tokens are lost; no message is sent twice |
//! | the data is lost, or an empty replica takes over | at most ten more retries for each destination |
//! | the script is flushed | it is sent again with the next question |
//! | the server's clock goes back | time adds nothing until it has caught up, or from now on if that takes over 40 s |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod connection;
mod error;
#[doc = include_str!("guide.md")]
pub mod guide {}
mod script;
mod source;
mod store;

pub use error::{RedisStoreError, StoreFailed};
pub use reattempt_fleet::{BoxError, BudgetStore, FleetBudget, FleetEvent, FleetStats, MemoryStore, Settling, rule};
pub use store::{RedisStore, StoreWarning};
