//! Tests of gRPC metrics, with an in-memory reader under a paused clock. The names contain the ids of the rules that
//! they test.

mod auto_traits;
mod calls;
mod ends;
mod instruments;
mod retries;
mod sizes;
mod timers;
