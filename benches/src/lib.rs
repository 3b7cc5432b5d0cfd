//! What is measured: ours and the peers', in one harness.
//!
//! What flows in: the name of a row of the table and of one of its contenders. What flows out: that
//! contender's [`Work`], which does as many operations as it is told. The binary `counts` runs it
//! once under callgrind or with its allocations counted, criterion times it, and the binary
//! `compare` makes the table. So what is counted is what is timed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a measurement that goes wrong fails by panicking"
)]

mod allocator;
mod callgrind;
mod contenders;
mod inner;
mod requests;
mod rows;

pub use allocator::{Allocations, Counting};
pub use callgrind::{Counted, count, count_here};
pub use rows::{Contender, Row, Work, check, find, rows};
#[cfg(feature = "peers")]
pub use rows::{Sized, serve, sizes};
