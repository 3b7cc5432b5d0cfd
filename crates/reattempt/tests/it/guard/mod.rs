//! Tests of guards around clients: what is admitted, what a refusal is, and how tickets end.

mod auto_traits;
mod bodies;
mod breaker;
mod earlier_hop;
mod ending;
#[cfg(feature = "tonic")]
mod grpc;
mod limits;
mod orders;
mod restarts;
mod spawned;
mod stacks;
mod standard;
mod standard_deadlines;
mod standard_hedges;
pub(crate) mod support;
mod token_sequences;
mod tokens;
mod uploads;
mod waiting;
mod whose_time;
mod with_hedges;
mod with_retries;
