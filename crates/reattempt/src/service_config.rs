//! Service configs: what the owner of a gRPC service says about the retries, hedging, deadlines and
//! throttling of its methods, as a JSON document. [`ServiceConfigLayer`](crate::ServiceConfigLayer)
//! applies one to the calls of a channel.

pub use reattempt_grpc::{
    CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, NoServiceConfig, RetryPolicy,
    ServiceConfig, ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle,
    ServiceConfigReader, Throttle, Throttling,
};
