//! Models of a question to the store: its answer, its end, and the report of its tokens, in any order.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p reattempt-fleet --test loom --release`.
#![cfg(loom)]

#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/ask.rs"]
mod ask;
#[allow(dead_code, unreachable_pub, missing_docs, reason = "only what the models use; the crate exports it")]
#[path = "../../src/courier.rs"]
mod courier;
#[allow(dead_code, unreachable_pub, reason = "only what the models use; the crate exports it")]
#[path = "../../src/course.rs"]
mod course;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/destination.rs"]
mod destination;
#[path = "../../src/key.rs"]
mod key;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/member.rs"]
mod member;
mod models;
#[allow(dead_code, unreachable_pub, reason = "only what the models use; the crate exports it")]
#[path = "../../src/rate_rule.rs"]
mod rate_rule;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/report.rs"]
mod report;
#[allow(dead_code, unreachable_pub, reason = "only what the models use; the crate exports it")]
#[path = "../../src/rule.rs"]
mod rule;
#[allow(dead_code, unreachable_pub, reason = "only what the models use; the crate exports it")]
#[path = "../../src/stats.rs"]
mod stats;
#[allow(dead_code, unreachable_pub, reason = "only what the models use; the crate exports it")]
#[path = "../../src/store.rs"]
mod store;
#[path = "../../src/sync.rs"]
mod sync;
#[allow(dead_code, reason = "only what the models use")]
#[path = "../../src/table.rs"]
mod table;
