//! Tests of the rate limit.

mod failures;
mod follow;
mod go;
mod queue;

use reattempt_control::{Limit, RateLimit};

/// Returns a limit of ten tokens per second with this burst.
fn ten(burst: u32) -> RateLimit {
    RateLimit::new(Limit::per_second(10), burst)
}
