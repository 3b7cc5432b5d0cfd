//! gRPC: codes, trailers, pushback and service configs, for the same retry, hedge and guard layers.
//!
//! [`RetryLayer::grpc`](crate::RetryLayer::grpc) and [`RetryPolicy::grpc`](crate::RetryPolicy::grpc) retry gRPC
//! over any HTTP/2 client. [`Grpc`] holds what is retried and read. It is not at the root of the crate, because tonic
//! has types of that name: write `grpc::Grpc` beside them. Its setters stand in the chains of the policies too.
//!
//! | item | content |
//! |---|---|
//! | [`GrpcBody`] | the body of a response, which reads the status in its trailers |
//! | [`GrpcCode`] | the status codes |
//! | [`service_config`] | retries and hedging by method, from a service config in JSON |
//! | [`peek_trailers`] | reads the trailers of short responses before they are classified |
//! | [`inbound_deadline`] | the deadline of a server's own caller, for its outbound calls |
//! | `metrics` | gRPC's own instruments, behind the feature `opentelemetry` |

#[cfg(feature = "tonic")]
mod backup;
mod body;
#[cfg(feature = "tonic")]
mod channel;
mod deadline;
mod endpoints;
mod errors;
mod facts;
mod fallback;
mod finish;
mod guard;
mod hedge;
mod policy;
pub(crate) mod protocol;
mod settings;
mod shed;

pub mod inbound_deadline;
#[cfg(feature = "opentelemetry")]
pub mod metrics;
pub mod peek_trailers;
pub mod service_config;

pub use body::GrpcBody;
pub use protocol::Grpc;
pub use reattempt_grpc::Code as GrpcCode;
