//! A rate limit that many processes share: each fetches a portion of the tokens ahead of its calls.
//!
//! `rate_rule` is the bucket of a store, a function over integers.
//!
//! | file | content |
//! |---|---|
//! | `portion` | the tokens that a process holds for one destination |
//! | `limit` | the guard: portions by destination, questions to the store, and the local limit |

mod limit;
mod portion;

pub use limit::{FleetRateLimit, FleetRateStats, FleetRateTicket};

pub use crate::rate_rule::{Rate, take};
