//! The layer that applies a service config.

use std::sync::Arc;

use reattempt_core::Budget;
use reattempt_grpc::{RetryThrottle, ServiceConfigHandle};
use tower_layer::Layer;

use super::Client;
use crate::call::observe::{Event, Observer, notify};
use crate::call::options::CallOptions;
use crate::grpc::Grpc;
use crate::hedge::HedgePolicy;
use crate::policy::RetryPolicy;

use super::{Hedges, Retries};

/// The default maximum number of attempts per call.
// CALL-8
const DEFAULT_CAP: u32 = 5;

/// A layer that retries and hedges calls on a gRPC channel according to a service config.
///
/// The layer looks up each call's method in the current config. That entry applies until the call ends.
///
/// | in the config | effect on a call |
/// |---|---|
/// | `retryPolicy` | the config sets the attempts, the backoff (± 20 %) and the codes. Every call to the method is retried after these codes, because the service's owner allows it |
/// | `hedgingPolicy` | the config sets the attempts, the delay and the codes. Hedged calls are not retried |
/// | neither policy, or no entry | the call is retried only in two cases: transparent retries, and a failed connection. An empty config therefore retries less than [`RetryPolicy::grpc`], whose docs compare the two |
/// | `timeout` | the earlier of this limit and the caller's deadline applies |
/// | `retryThrottling` | the handle's throttle must grant all retries and hedges. Every call that ends with OK adds tokens |
/// | `waitForReady`, `maxRequestMessageBytes`, `maxResponseMessageBytes` | none: set these on the channel and the generated client. [`ServiceConfig::unapplied`](crate::grpc::service_config::ServiceConfig::unapplied) lists those that a config contains |
/// | load balancing | none: it belongs inside this layer |
///
/// While a handle has no config, every call fails with UNAVAILABLE.
///
/// The [`CallOptions`](crate::CallOptions) of a request override the config, except that
/// [`attempt_timeout`](crate::CallOptions::attempt_timeout) has no effect: a call fails with the channel's own error
/// here, which has no value for an interrupted attempt. gRPC lets clients change less.
///
/// ```
/// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigHandle, ServiceConfigLayer};
/// use tower::ServiceBuilder;
///
/// let config = ServiceConfig::parse(
///     r#"{
///       "methodConfig": [{
///         "name": [{ "service": "inventory.Stock" }],
///         "retryPolicy": {
///           "maxAttempts": 4,
///           "initialBackoff": "0.1s",
///           "maxBackoff": "1s",
///           "backoffMultiplier": 2,
///           "retryableStatusCodes": ["UNAVAILABLE", "ABORTED"]
///         }
///       }],
///       "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
///     }"#,
/// )?;
/// let handle = ServiceConfigHandle::new(config);
/// let builder = ServiceBuilder::new().layer(ServiceConfigLayer::new(handle.clone()));
///
/// // Later, while calls are in flight. If the new config is invalid, the old one stays in force.
/// handle.update(ServiceConfig::parse("{}"))?;
/// # Ok::<(), reattempt::grpc::service_config::ServiceConfigErrors>(())
/// ```
// SC-1, CALL-6, CALL-1, HG-9, CALL-2, DL-1, THR-1, THR-4, SC-6
#[derive(Debug, Clone)]
pub struct ServiceConfigLayer<Budgets = RetryThrottle> {
    pub(super) handle: ServiceConfigHandle,
    pub(super) most_attempts: u32,
    pub(super) never: bool,
    grpc: Grpc,
    pub(super) retries: Retries<Budgets>,
    pub(super) hedges: Hedges<Budgets>,
}

impl ServiceConfigLayer {
    /// Creates a layer that applies the config of `handle`, or a
    /// [`ServiceConfig`](crate::grpc::service_config::ServiceConfig) that is never replaced.
    ///
    /// Use one handle per channel, because the handle contains the throttle.
    pub fn new(handle: impl Into<ServiceConfigHandle>) -> Self {
        Self::with(handle, Grpc::new())
    }

    /// Creates a layer that applies the config of `handle` with a custom protocol value: classifiers, the limit on
    /// saved bodies, transparent retries. These settings apply to retried and hedged calls.
    pub fn with(handle: impl Into<ServiceConfigHandle>, grpc: Grpc) -> Self {
        let handle = handle.into();
        let throttle = handle.throttle();
        Self {
            retries: RetryPolicy::with(grpc.clone()).budget(throttle.clone()).max_elapsed(None),
            hedges: HedgePolicy::with(grpc.clone()).budget(throttle.clone()).max_elapsed(None),
            handle,
            grpc,
            most_attempts: DEFAULT_CAP,
            never: false,
        }
    }

    /// Adds a budget, for example one that many processes share. A retry or hedge then needs a permit from it and from
    /// the config's throttle. Default: only the throttle, as gRPC specifies.
    ///
    /// ```
    /// use reattempt::RetryBudget;
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default()).budget(RetryBudget::cautious());
    /// ```
    pub fn budget<T: Budget + Clone>(self, budget: T) -> ServiceConfigLayer<(RetryThrottle, T)> {
        let throttle = self.handle.throttle().clone();
        ServiceConfigLayer {
            retries: self.retries.budget((throttle.clone(), budget.clone())),
            hedges: self.hedges.budget((throttle, budget)),
            handle: self.handle,
            grpc: self.grpc,
            most_attempts: self.most_attempts,
            never: self.never,
        }
    }
}

impl<Budgets: Budget + Clone> ServiceConfigLayer<Budgets> {
    /// Sets the maximum number of attempts per retried or hedged call. Higher numbers in the config are lowered to this
    /// maximum. Default: 5.
    ///
    /// 0 and 1 turn the config's retries and hedges off. Two kinds of retry remain. Transparent retries are one kind,
    /// which [`transparent_retries`](Grpc::transparent_retries) turns off. Retries of failed connections, for
    /// methods without a policy, are the other. [`never_retry`](Self::never_retry) turns both kinds off too.
    // CALL-8, TR-8
    pub fn max_attempts(self, attempts: u32) -> Self {
        let cap = attempts.max(DEFAULT_CAP);
        Self { most_attempts: attempts, ..self }.hedges(|hedges| hedges.attempts_cap(cap))
    }

    /// Turns all retries and hedges off. Each call is sent once, whatever the config and the call's own options
    /// contain. Requests are not saved.
    ///
    /// The config's timeouts still apply. While there is no config, calls still fail with UNAVAILABLE.
    ///
    /// ```
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default()).never_retry();
    /// ```
    pub fn never_retry(self) -> Self {
        Self { never: true, ..self }
    }

    /// Changes the protocol's settings for retried and hedged calls: classifiers, rules that set options, the limits on
    /// saved bodies, transparent retries. Both kinds of call share the memory limit for saved bodies.
    ///
    /// Call this before [`retries`](Self::retries) and [`hedges`](Self::hedges), because it replaces their protocol
    /// settings.
    ///
    /// ```
    /// use reattempt::body::ReplayLimits;
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default())
    ///     .protocol(|grpc| grpc.replay(ReplayLimits::default().per_call(1024 * 1024)));
    /// ```
    pub fn protocol(self, change: impl FnOnce(Grpc) -> Grpc) -> Self {
        let grpc = change(self.grpc.clone());
        Self { grpc: grpc.clone(), ..self }
            .retries(|retries| retries.protocol(|_| grpc.clone()))
            .hedges(|hedges| hedges.protocol(|_| grpc.clone()))
    }

    /// Adds an observer of retried and hedged calls, after earlier observers.
    pub fn observe_with<O: Observer + 'static>(self, observer: O) -> Self {
        let of_retries = Arc::new(observer);
        let of_hedges = Arc::clone(&of_retries);
        self.retries(|retries| retries.observe(move |destination, event| notify(&*of_retries, destination, event)))
            .hedges(|hedges| hedges.observe(move |destination, event| notify(&*of_hedges, destination, event)))
    }

    /// Adds a closure as an observer. Its first argument, the call's destination, is empty unless the generated client
    /// has an origin (see [destinations](Grpc)).
    ///
    /// ```
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default())
    ///     .observe(|server, event| eprintln!("{server}: {event}"));
    /// ```
    pub fn observe<F: Fn(&str, &Event<'_>) + Send + Sync + 'static>(self, observer: F) -> Self {
        self.observe_with(observer)
    }

    /// Changes retry settings that a service config cannot express: hooks, drain time, observers.
    ///
    /// `change` gets the layer's retry policy. That policy's schedule and maximum attempts apply only to retries of
    /// failed connections, for methods without a retry or hedging policy in the config.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default())
    ///     .retries(|policy| policy.drain_time(Duration::from_millis(10)));
    /// ```
    pub fn retries(self, change: impl FnOnce(Retries<Budgets>) -> Retries<Budgets>) -> Self {
        Self { retries: change(self.retries), ..self }
    }

    /// Changes hedging settings that a service config cannot express.
    pub fn hedges(self, change: impl FnOnce(Hedges<Budgets>) -> Hedges<Budgets>) -> Self {
        Self { hedges: change(self.hedges), ..self }
    }

    /// Returns the config's handle.
    pub fn handle(&self) -> &ServiceConfigHandle {
        &self.handle
    }
}

impl<S: Clone, Budgets: Budget + Clone> Layer<S> for ServiceConfigLayer<Budgets> {
    type Service = Client<S, Budgets>;

    fn layer(&self, inner: S) -> Client<S, Budgets> {
        let policies = (self.retries.clone(), self.hedges.clone());
        let client = Client::new(self.handle.clone(), self.most_attempts, policies, inner);
        match self.never {
            true => client.with_options(CallOptions::new().never_retry()),
            false => client,
        }
    }
}
