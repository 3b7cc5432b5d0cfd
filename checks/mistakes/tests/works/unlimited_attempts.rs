//! Unlimited attempts.

use reattempt::RetryPolicy;

fn main() {
    let _ = RetryPolicy::http().max_attempts(None);
}
