//! The measured code: ours and the peers', in one harness.
//!
//! A row of the table and one of its contenders name a [`Work`], which does a given number of
//! operations. The binary `counts` runs it: under callgrind, with counted allocations, or timed.
//! The binary `compare` makes the table of these figures. So the counted code and the timed code
//! are the same.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that goes wrong fails by panicking"
)]

mod allocator;
mod callgrind;
mod contenders;
#[cfg(feature = "peers")]
mod cpu_times;
mod inner;
mod requests;
mod rows;

pub use allocator::{Allocations, Counting};
pub use callgrind::{Counted, count, count_here};
#[cfg(feature = "peers")]
pub use cpu_times::cpu_times;
pub use rows::{Contender, Row, Work, check, find, rows};
#[cfg(feature = "peers")]
pub use rows::{Sized, serve, sizes};
