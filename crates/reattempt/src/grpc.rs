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
//! | [`service_config`] | retries and hedging per method, from a JSON service config. Its handle is a part of a [`Snapshot`](crate::snapshot::Snapshot) |
//! | [`peek_trailers`] | a layer that reads the first frame of each response before it is classified: trailers, or a body that breaks |
//! | [`InboundDeadlineLayer::grpc`](crate::deadline::InboundDeadlineLayer::grpc) | reads the deadline of an inbound call; each attempt has a `grpc-timeout` anyway |
//! | `metrics` | gRPC's own instruments, behind the feature `opentelemetry` |

#[doc(inline)]
pub use reattempt_engine::grpc::{
    DescriptorSet, DescriptorSetError, Grpc, GrpcBody, GrpcCode, IdempotencyLevel, peek_trailers, service_config,
};
#[cfg(all(feature = "opentelemetry", feature = "tonic"))]
#[cfg_attr(docsrs, doc(cfg(all(feature = "opentelemetry", feature = "tonic"))))]
#[doc(inline)]
pub use reattempt_telemetry::grpc as metrics;
