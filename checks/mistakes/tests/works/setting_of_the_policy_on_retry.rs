//! A setting of the policy, called on `retry()`.

use std::time::Duration;

use reattempt::retry;
use reattempt::schedule::Exponential;

async fn operation() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let _ = retry(Exponential::full_jitter(Duration::from_millis(100)), operation).max_attempts(3);
}
