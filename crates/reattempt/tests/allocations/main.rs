//! Tests of allocations per call, with a counting allocator.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, its helpers too"
)]

mod endpoints;
mod guard;
mod hedge;
mod operation;
mod pace;
mod retry;

use reattempt_testing::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
