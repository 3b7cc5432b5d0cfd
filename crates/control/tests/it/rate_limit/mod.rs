//! The rate limit.

mod failures;
mod follow;
mod go;
mod line;

use reattempt_control::{Limit, RateLimit};

/// Ten tokens a second, and as many at once as `burst`.
fn ten(burst: u32) -> RateLimit {
    RateLimit::new(Limit::per_second(10), burst)
}
