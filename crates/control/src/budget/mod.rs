//! The retry budget, which grants or refuses every retry.
//!
//! | file | its part |
//! |---|---|
//! | `retry_budget` | the type that users name: constructors and setters |
//! | `contract` | its implementation of core's `Budget` |
//! | `settings` | the settings, checked, as integers |
//! | `store` | the interface between a budget and its buckets; one bucket for all destinations |
//! | `destinations` | a table of buckets |
//! | `destination_bucket` | the interface between the stores and the kinds of bucket |
//! | `bucket`, `cautious` | the two kinds of bucket, each one atomic word |
//! | `not_full` | the count of buckets that a success would change |
//! | `debug` | the `Debug` output |

mod bucket;
mod cautious;
mod contract;
mod debug;
mod destination_bucket;
mod destinations;
mod not_full;
mod retry_budget;
mod settings;
mod store;

pub use retry_budget::RetryBudget;
