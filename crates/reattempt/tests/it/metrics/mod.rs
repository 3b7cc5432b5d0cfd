//! Tests of gRPC and guard metrics, with an in-memory reader under a paused clock. The names contain the ids of the
//! rules that they test.

mod auto_traits;
mod calls;
mod endpoints;
mod ends;
mod guards;
mod instruments;
pub(crate) mod reader;
mod retries;
mod sizes;
mod timers;

use crate::grpc::{reset, support};
