//! Guards: state machines that decide about every attempt, the first included. Their contract is
//! [`reattempt_core::guard`].

mod breaker;
mod keyed;

pub use breaker::{BreakerState, BreakerTicket, CircuitBreaker, Counts, StateChange};
