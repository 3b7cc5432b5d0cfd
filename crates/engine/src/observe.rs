//! Observers, which are notified of every event in every call.
//!
//! [`RetryPolicy::observe`](crate::RetryPolicy::observe) adds an observer. Any `Fn(&str, &Event)` is an [`Observer`].
//! `TracingObserver`, behind the feature `tracing`, writes each [`Event`] to `tracing`.

#[cfg(feature = "tracing")]
pub use crate::call::observe::TracingObserver;
pub use crate::call::observe::{Event, Observer};
pub use reattempt_core::Proof;
