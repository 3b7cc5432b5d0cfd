//! A retry budget for a whole fleet, on Redis or Valkey.
//!
//! A process's own budget does not count the retries of other processes. Before [`FleetBudget`] grants a retry, it asks
//! a store that all processes share. This crate provides the store, and re-exports everything that a program needs. The
//! [`guide`] explains why to share a budget, and how to run its store.
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
//! # Supported servers
//!
//! Redis from version 5, or Valkey: one server, a cluster (feature `cluster`) or sentinels (feature `sentinel`). TLS
//! requires the feature `tls`. The user needs permission for the commands `EVAL`, `EVALSHA`, `GET`, `SET` and `TIME`,
//! and for the keys with the budget's prefix. A cluster also needs `CLUSTER SLOTS`, and sentinels need `ROLE`. Each
//! destination has one key of about 120 bytes, which expires 40 s after the last message about this destination.
//!
//! With *TLS*, the system's certificates are trusted. If the environment variable `SSL_CERT_FILE` names a file, the
//! certificates in this file are trusted instead. Client certificates are not supported. To choose a cryptography
//! provider for rustls, install it before creating a store. Otherwise, a store with TLS installs `ring`.
//!
//! *Eviction refills buckets*: a server that evicts a bucket's key forgets that the bucket is empty. Use a dedicated
//! server, or the policy `noeviction` or `volatile-ttl`. [`warnings`](RedisStore::warnings) checks the server's policy.
//!
//! # Faults
//!
//! A process can start, run and stop without its store, and asks a failed store again once per second. During the first
//! two faults below, a process whose retries succeed goes on with its own budget. Any other process refuses retries for
//! 5 to 10 s, and then uses its own budget, too. The [`guide`] lists more faults.
//!
//! | fault | effect |
//! |---|---|
//! | the server is down, refuses the password, is read-only or full, or is not Redis | each process decides without it |
//! | the server stalls, or its replies are late | each retry is delayed by up to 50 ms; after the first late reply, only one retry per second is delayed |
//! | a reply is lost | at most the tokens in that request or reply are lost; no message is sent twice, except in a cluster |
//! | the data is lost, or an empty replica takes over | at most ten more retries per destination |
//! | the server's script cache is flushed | the script is sent again with the next request |
//! | the server's clock goes backwards | time adds no tokens until the clock has caught up; if that would take more than 40 s, or 5 s for a rate limit, the new time applies immediately |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bounded;
mod connection;
mod error;
#[doc = include_str!("guide.md")]
pub mod guide {}
mod script;
mod source;
mod store;

pub use error::{RedisStoreError, StoreFailed};
#[cfg(feature = "opentelemetry")]
#[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
pub use reattempt_fleet::FleetMetrics;
pub use reattempt_fleet::{
    BoxError, BudgetStore, FleetBudget, FleetEvent, FleetStats, MemoryStore, RateStore, Settling, Taking, rate, rule,
};
pub use store::{RedisStore, StoreWarning};
