//! Measurements of gRPC calls and of guards, by instruments whose measurements are read in memory, under a paused
//! clock. The names carry the ids of the rules that they test.

mod auto_traits;
mod calls;
mod ends;
mod guards;
mod instruments;
mod reader;
mod retries;
mod sizes;
mod timers;

use crate::grpc::{reset, support};
