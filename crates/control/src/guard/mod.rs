//! Guards: state machines that admit or refuse every attempt, including the first. Their trait is in
//! [`reattempt_core::guard`].

mod adaptive;
mod breaker;
mod bulkhead;
mod guard_type;
mod heads;
mod inspect;
mod pause;
mod per_destination;
mod places;
mod rate_limit;
mod send_rate;
mod server_load;
mod throttle;
mod time;
mod usual_latency;
mod wait_queue;

pub use adaptive::{AdaptiveLimit, AdaptiveTicket, Aimd, Gradient2, LimitRule, LimitWindow, Vegas};
pub use breaker::{BreakerState, BreakerTicket, CircuitBreaker, Counts, StateChange};
pub use bulkhead::{Bulkhead, BulkheadTicket};
pub use pause::{Pause, PauseTicket};
pub use places::Usage;
pub use rate_limit::{Limit, RateLimit, RateTicket, Reservation};
pub use send_rate::{SendRate, SendTicket};
pub use server_load::{Advice, ServerLoad};
pub use throttle::{Throttle, ThrottleCounts, ThrottleTicket};
pub use usual_latency::UsualLatency;
pub use wait_queue::{Patience, WaitQueue, WaiterId, Wakers};
