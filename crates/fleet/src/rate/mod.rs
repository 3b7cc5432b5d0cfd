//! A rate limit that many processes share. Each process prefetches tokens for its calls.
//!
//! `rate_rule` implements a store's bucket as a function over integers.
//!
//! | file | content |
//! |---|---|
//! | `portion` | the tokens that a process holds for one destination |
//! | `limit` | the guard |
//! | `shared` | what its clones share: portions by destination, the store and the local limit |
//! | `fetch` | one request to the store |
//! | `outage` | the store's failures in a row, and when it is asked again |
//! | `stats` | events and counts |

mod fetch;
mod limit;
mod outage;
mod portion;
mod shared;
mod stats;

pub use limit::{FleetRateLimit, FleetRateTicket};
pub use stats::{FleetRateEvent, FleetRateStats};

pub use crate::rate_rule::{Rate, State, Taken, take};
