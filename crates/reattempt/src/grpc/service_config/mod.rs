//! Service configs: retries, hedging, deadlines and throttling for each method of a service, as its owner
//! publishes them in JSON.
//!
//! [`ServiceConfigLayer`] applies a config to the calls of a channel: it looks the method of each call up in
//! the config that is in force, and hands the call to a retrying or a hedging client.
//!
//! The policies here are the entries of a document. Layers are made with [`crate::RetryPolicy`] or
//! [`crate::hedge::HedgePolicy`]. Codes are [`GrpcCode`](crate::grpc::GrpcCode)s.

use reattempt_schedule_exponential::Exponential;

use crate::grpc::protocol::Grpc;
use crate::hedge::HedgePolicy;

mod future;
mod layer;
mod method;
mod service;

pub use future::ResponseFuture;
pub use layer::ServiceConfigLayer;
pub(crate) use method::kind;
pub use reattempt_grpc::{
    CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, NoServiceConfig, RetryPolicy,
    ServiceConfig, ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle,
    ServiceConfigReader, Throttle, Throttling, UnappliedSetting,
};
pub use service::Client;

/// The policy of the calls that a config does not hedge.
type Retries = crate::policy::RetryPolicy<Grpc, Exponential, Throttle>;
/// The policy of the calls that a config hedges.
type Hedges = HedgePolicy<Grpc, Throttle>;
