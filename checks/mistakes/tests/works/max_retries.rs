//! The number of retries instead of the number of attempts.

use reattempt::RetryPolicy;

fn main() {
    let _ = RetryPolicy::http().max_retries(3);
}
