//! A rate limit that many processes share. Each process prefetches tokens for its calls.
//!
//! `rate_rule` implements a store's bucket as a function over integers.
//!
//! | file | content |
//! |---|---|
//! | `portion` | the tokens that a process holds for one destination |
//! | `limit` | the guard: portions by destination, requests to the store, and the local limit |

mod limit;
mod portion;

pub use limit::{FleetRateLimit, FleetRateStats, FleetRateTicket};

pub use crate::rate_rule::{Rate, take};
