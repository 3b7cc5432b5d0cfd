//! The retry budget: what flows in is the successes of calls and the wish to retry, what flows out
//! is a permit or none. [`RetryBudget`] is the type that users name; the contract it keeps, its settings,
//! its table of destinations, the bucket itself and what it shows of itself have a file each.

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
