//! Helpers that the tests of several crates share.
//!
//! The crate is not published. Other crates depend on it by path only, as a dev-dependency, so that their packages do
//! not need it.

mod allocator;
mod permits;
mod random;
mod schedule;
mod time;

pub use allocator::{CountingAllocator, allocations, allocations_of, bytes_in_use};
pub use permits::PermitCount;
pub use random::{Always, Never, Seeded};
pub use schedule::{FailingCall, bounds, first};
pub use time::{ms, secs};
