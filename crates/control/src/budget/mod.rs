//! The retry budget, which grants or refuses every retry.
//!
//! | file | content |
//! |---|---|
//! | `retry_budget` | the public type: constructors and setters |
//! | `contract` | its implementation of core's `Budget` |
//! | `settings` | the validated settings, as integers |
//! | `destinations` | the buckets: one for all destinations, or a table |
//! | `any_bucket` | a bucket of any kind |
//! | `bucket`, `cautious` | the two kinds of bucket, each one atomic word |
//! | `not_full` | the count of buckets that a success would change |
//! | `shown` | the output: for `Debug`, and for a snapshot |

mod any_bucket;
mod bucket;
mod cautious;
mod contract;
mod destinations;
mod not_full;
mod retry_budget;
mod settings;
mod shown;

pub use retry_budget::RetryBudget;
