//! The units of time, the usual times of a call, and the times of a run, in nanoseconds.

use std::ops::Range;

pub(super) const MILLISECOND: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1000 * MILLISECOND;
/// The mean time of a worker for a request, the time of a message, and the usual time of a call.
pub(super) const SERVICE: u64 = 33 * MILLISECOND;
pub(super) const NETWORK: u64 = 5 * MILLISECOND;
pub(super) const LATENCY: u64 = SERVICE + 2 * NETWORK;

/// The times of a run.
#[derive(Debug, Clone)]
pub(super) struct Times {
    pub(super) fault: Range<u64>,
    /// The end of the load.
    pub(super) end: u64,
}
