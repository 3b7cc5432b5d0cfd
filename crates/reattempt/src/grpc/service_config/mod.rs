//! Service configs in JSON, by which the owner of a service sets retries, hedging, deadlines and throttling of each
//! method.
//!
//! [`ServiceConfigLayer`] applies a config to the calls of a channel. It looks up the method of each call in the
//! current config, and sends the call by a retrying or a hedging client.
//!
//! | item | content |
//! |---|---|
//! | [`ServiceConfigLayer`], [`Client`] | the layer, and the client to store: `Client<Channel>` |
//! | [`ServiceConfig`] | a config: parsed from JSON, or loaded from a file |
//! | [`ServiceConfigHandle`] | the config in force, which can be replaced while calls are under way |
//! | [`ServiceConfigErrors`] | all mistakes of a document |
//!
//! [`MethodRetryPolicy`] and [`MethodHedgingPolicy`] are entries of the document.
//! [`RetryPolicy`](crate::RetryPolicy) and [`HedgePolicy`] make layers. Codes are
//! [`GrpcCode`](crate::grpc::GrpcCode)s.

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
    CodeSet, MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy, NoServiceConfig, RetryThrottle,
    RetryThrottling, ServiceConfig, ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle, ServiceConfigReader,
    UnappliedSetting,
};
pub use service::Client;

/// The policy of the calls that a config does not hedge.
type Retries = crate::policy::RetryPolicy<Grpc, Exponential, RetryThrottle>;
/// The policy of the calls that a config hedges.
type Hedges = HedgePolicy<Grpc, RetryThrottle>;
