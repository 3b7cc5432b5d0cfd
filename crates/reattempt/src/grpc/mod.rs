//! gRPC: codes, trailers, pushback and service configs, for the same retry, hedge and pace layers.
//!
//! Generic modules know nothing of this one. It adds a protocol, [`Grpc`], the constructors of policies and
//! layers for it, and the layers that only gRPC needs.

mod body;
#[cfg(feature = "tonic")]
mod channel;
mod deadline;
mod errors;
mod finish;
mod hedge;
mod inbound_deadline;
#[cfg(feature = "opentelemetry")]
mod metrics;
mod pace;
mod peek_trailers;
mod policy;
mod protocol;
mod settings;

pub mod service_config;

pub use body::GrpcBody;
pub use inbound_deadline::{InboundDeadline, InboundDeadlineLayer};
#[cfg(feature = "opentelemetry")]
pub use metrics::{
    GrpcMetrics, GrpcMetricsLayer, Measured, MeasuredBody, MeasuredFuture, RetryMetric,
};
pub use peek_trailers::{PeekTrailers, PeekTrailersBody, PeekTrailersFuture, PeekTrailersLayer};
pub use protocol::Grpc;
pub use reattempt_grpc::Code as GrpcCode;
