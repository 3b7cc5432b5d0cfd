//! A policy for requests, around an operation.

use reattempt::{RetryPolicy, retry};

async fn load() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let _ = retry(RetryPolicy::http(), load);
}
