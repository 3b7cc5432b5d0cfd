//! Clients with retries of their own. Each test is an example of `reattempt-faults`: a script, the client, and the
//! ledger's verdict on what the client has sent. `middlewares` compares two clients.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod curl;
mod middlewares;
mod reqwest_own;
mod reqwest_retry;
mod tower_resilience;
