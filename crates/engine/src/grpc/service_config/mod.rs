//! JSON service configs, in which a service's owner sets retries, hedging, deadlines and throttling per method.
//!
//! [`ServiceConfigLayer`] applies a config to the calls on a channel. It looks up each call's method in the current
//! config, and sends the call through a retrying or a hedging client.
//!
//! | item | content |
//! |---|---|
//! | [`ServiceConfigLayer`], [`Client`] | the layer, and the type of its client: `Client<Channel>` |
//! | [`ServiceConfig`] | a config: parsed from JSON, or loaded from a file |
//! | [`ServiceConfigHandle`] | the current config, which can be replaced while calls are in flight |
//! | [`ServiceConfigErrors`] | all errors in a document |
//!
//! [`MethodRetryPolicy`] and [`MethodHedgingPolicy`] are entries in the document, whereas
//! [`RetryPolicy`](crate::RetryPolicy) and [`HedgePolicy`] create layers. Codes are
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

/// The policy for calls that the config does not hedge.
type Retries<Budgets> = crate::policy::RetryPolicy<Grpc, Exponential, Budgets>;
/// The policy for calls that the config hedges.
type Hedges<Budgets> = HedgePolicy<Grpc, Budgets>;
