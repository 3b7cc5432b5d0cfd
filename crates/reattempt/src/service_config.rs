//! Service configs: what the owner of a gRPC service says about the retries, hedging, deadlines and
//! throttling of its methods, as a JSON document. [`ServiceConfigLayer`](crate::ServiceConfigLayer)
//! applies one to the calls of a channel.
//!
//! The policies here are what a document says of one method, and nothing that a layer is made with: that
//! is [`crate::RetryPolicy`] or [`crate::HedgePolicy`]. Nothing of this module is at the crate's root, where
//! only one type goes by each of these names. Codes are [`GrpcCode`](crate::GrpcCode)s.

pub use reattempt_grpc::{
    CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, NoServiceConfig, RetryPolicy,
    ServiceConfig, ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle,
    ServiceConfigReader, Throttle, Throttling,
};
