//! gRPC support for the retry, hedge and guard layers: codes, trailers, pushback and service configs.
//!
//! [`RetryLayer::grpc`](crate::RetryLayer::grpc) and [`RetryPolicy::grpc`](crate::RetryPolicy::grpc) retry gRPC over
//! any HTTP/2 client. [`Grpc`] contains the protocol's settings, such as the codes that are retried. Its setters are
//! also available on the policies. Write `grpc::Grpc`: the type is not at the crate root, because tonic has types with
//! that name.
//!
//! | item | content |
//! |---|---|
//! | [`GrpcBody`] | the response body, which reads the status in its trailers |
//! | [`GrpcCode`] | the status codes |
//! | [`DescriptorSet`], [`IdempotencyLevel`] | the methods that their `.proto` file declares as repeatable |
//! | [`service_config`] | retries and hedging per method, from a JSON service config |
//! | [`peek_trailers`] | a layer that reads the trailers of short responses before they are classified |
//! | [`inbound_deadline`] | the deadline of an inbound call, which can be propagated to outbound calls |
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
#[cfg(all(feature = "opentelemetry", feature = "tonic"))]
pub mod metrics;
pub mod peek_trailers;
pub mod service_config;

pub use body::GrpcBody;
pub use protocol::Grpc;
pub use reattempt_grpc::{Code as GrpcCode, DescriptorSet, DescriptorSetError, IdempotencyLevel};
