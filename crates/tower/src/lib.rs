//! The tower layers of reattempt. A wait needs a tokio runtime with its time driver on: tokio panics where a
//! runtime has none, and offers no way to find out.
//!
//! What flows in: the calls of any client that is a tower `Service`. What flows out: the same calls,
//! retried where that is safe and worth it. [`RetryLayer`] wraps a client; [`RetryPolicy`] says how;
//! the decision itself is made by `reattempt-core`, and this crate only carries it out: it keeps the
//! request, waits by tokio's clock, and sends again.

#![forbid(unsafe_code)]

mod clock;
mod configured;
mod deadline;
mod error_mode;
mod hedge;
mod hook;
#[cfg(feature = "opentelemetry")]
mod metrics;
mod observe;
mod operation;
mod options;
mod pace;
mod policy;
mod protocol;
mod random;
mod redact;
mod report;
mod retry;
mod timed_out;
mod trailers_only;

pub use configured::{Configured, ConfiguredFuture, ServiceConfigLayer};
pub use deadline::{Deadline, InboundDeadline, InboundDeadlineLayer};
pub use error_mode::{Answered, BoxedError, ErrorMode, OwnError};
pub use hedge::{Extended, Hedge, HedgeFuture, HedgeLayer, HedgePolicy, HedgeReport, Hedgeable};
pub use hook::Attempting;
#[cfg(feature = "opentelemetry")]
pub use metrics::{
    GrpcMetrics, GrpcMetricsLayer, Measured, MeasuredBody, MeasuredFuture, RetryMetric,
};
#[cfg(feature = "tracing")]
pub use observe::TracingObserver;
pub use observe::{Event, Observer};
pub use operation::{
    IntoOperationPolicy, Operations, RetryError, Retrying, RetryingFuture, is_transient_io_error,
    is_transient_sqlstate, retry, retry_blocking,
};
pub use options::CallOptions;
pub use pace::{Pace, PaceFuture, PaceLayer, PaceRefusal, PaceRefused, Paced};
pub use policy::{Profile, RetryPolicy, StockDelay};
#[cfg(feature = "tower-http")]
pub use protocol::ClassifyWith;
#[cfg(feature = "reqwest")]
pub use protocol::KeptReqwest;
pub use protocol::{
    Admitted, AttemptKind, AttemptNumber, Carry, Cloned, DiscardBody, Grpc, GrpcBody, Http, Judge,
    Kept, KeptClone, KeptRequest, Messages, NestedMarker, NextAttempt, Origin, Outcome, Protocol,
};
pub use random::CallRandom;
pub use report::{AttemptOutcome, AttemptReport, Report, ReportSlot};
pub use retry::{Retry, RetryFuture, RetryLayer};
pub use timed_out::{RefusedResponse, TimeLimit, TimedOut};
pub use trailers_only::{PeekedBody, TrailersOnly, TrailersOnlyFuture, TrailersOnlyLayer};
