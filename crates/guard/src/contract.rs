//! The traits and types for writing guards, limit rules and protocols.
//!
//! [`Guard`] needs no runtime. A guard must implement two methods:
//!
//! ```
//! use std::sync::atomic::{AtomicUsize, Ordering};
//! use std::time::Duration;
//!
//! use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind};
//! use reattempt::guard::{GuardLayer, Reason, Refused};
//!
//! /// A bound on the responses that are not read to their ends.
//! struct Unread {
//!     most: usize,
//!     open: AtomicUsize,
//! }
//!
//! impl Guard for Unread {
//!     type Ticket = ();
//!
//!     fn admit(&self, _: &Arrival<'_>) -> Admit<()> {
//!         let more = |open| (open < self.most).then_some(open + 1);
//!         match self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more) {
//!             Ok(_) => Admit::Admitted(()),
//!             Err(_) => Admit::Refused(Refused::new(GuardKind::named(&"bound on bodies"), Reason::Full)),
//!         }
//!     }
//!
//!     fn end_ticket(&self, ticket: (), end: &End, _: Duration) -> Option<()> {
//!         if let End::Judged { .. } = end {
//!             return Some(ticket); // held until the body ends
//!         }
//!         self.open.fetch_sub(1, Ordering::Relaxed);
//!         None
//!     }
//! }
//!
//! let layer = GuardLayer::http(Unread { most: 64, open: AtomicUsize::new(0) });
//! ```

pub use reattempt_control::{
    AdaptiveTicket, BreakerTicket, BulkheadTicket, LimitRule, LimitWindow, RateTicket, SendTicket, ThrottleTicket,
};
pub use reattempt_core::guard::{
    Admit, Arrival, BodyEnd, End, Guard, GuardKind, Health, PairTicket, Quota, Resume, SharedGuard, SharedTicket, erase,
};

pub use super::future::ResponseFuture;
pub use super::pace::PaceTicket;
pub use super::protocol::GuardOutcome;
