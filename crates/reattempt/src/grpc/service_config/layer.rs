//! The layer.

use std::sync::Arc;

use reattempt_grpc::ServiceConfigHandle;
use tower_layer::Layer;

use super::Client;
use crate::call::observe::{Event, Observer};
use crate::call::options::CallOptions;
use crate::grpc::Grpc;
use crate::hedge::HedgePolicy;
use crate::policy::RetryPolicy;

use super::{Hedges, Retries};

/// The most attempts of a call unless the client sets another cap (rule CALL-8).
const DEFAULT_CAP: u32 = 5;

/// Retries and hedges the calls of a gRPC channel as a service config says, each by its method.
///
/// For each call it asks the handle what the config that is in force says of "/service/method", and
/// keeps to that until the call is over (rules SC-1, CALL-6):
///
/// - **`retryPolicy`**: the attempts, the back-off with ± 20 % and the codes are the config's. What
///   it lists is retried for every call of the method: the owner of the service has said so.
/// - **`hedgingPolicy`**: its attempts, delay and codes, without retries on top (rules CALL-1, HG-9).
/// - **`timeout`**: the smaller of it and the caller's deadline counts (rule DL-1).
/// - **neither policy, or no entry**: the call is not retried. What no server has seen is, all the
///   same: the transparent retries (rule CALL-2), and a connection that was not made, by the defaults
///   of [`RetryPolicy::grpc`]. So an empty config retries less than that policy alone, which retries
///   UNAVAILABLE too; its page has both side by side.
/// - **`retryThrottling`**: the handle's one throttle stands before all retries and hedges; every call
///   that ends with OK earns its part (rules THR-1, THR-4).
///
/// `waitForReady`, `maxRequestMessageBytes` and `maxResponseMessageBytes` are not acted on here: they
/// are the channel's and the generated client's to keep, and stand in
/// [`MethodConfig`](crate::grpc::service_config::MethodConfig) for whoever sets those up.
/// [`ServiceConfig::unapplied`](crate::grpc::service_config::ServiceConfig::unapplied) lists each of them that a
/// config sets. Load balancing goes below.
///
/// As long as a handle has no config at all, every call is answered UNAVAILABLE (rule SC-6).
///
/// A request may still carry [`CallOptions`](crate::CallOptions); what they say goes before the config,
/// which is more than rule CALL-3 leaves to a client.
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
/// // Later, while calls are under way:
/// handle.update(ServiceConfig::parse("{}"))?;
/// # Ok::<(), reattempt::grpc::service_config::ServiceConfigErrors>(())
/// ```
#[derive(Debug, Clone)]
pub struct ServiceConfigLayer {
    pub(super) handle: ServiceConfigHandle,
    pub(super) most_attempts: u32,
    pub(super) never: bool,
    grpc: Grpc,
    pub(super) retries: Retries,
    pub(super) hedges: Hedges,
}

impl ServiceConfigLayer {
    /// Applies the config of `handle`; a [`ServiceConfig`](crate::grpc::service_config::ServiceConfig) alone is one
    /// that is never replaced.
    ///
    /// One handle belongs to one channel, for its throttle does.
    pub fn new(handle: impl Into<ServiceConfigHandle>) -> Self {
        Self::with(handle, Grpc::new())
    }

    /// Applies the config of `handle` over a protocol with settings of its own: classifiers, the limit on
    /// kept bodies, transparent retries. They hold for retried and for hedged calls.
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

    /// The most attempts of any call, to which the config's are lowered (rule CALL-8). Default 5, for retried
    /// and for hedged calls.
    ///
    /// 0 and 1 turn the config's retries and hedges off. They leave the transparent retries, which
    /// [`transparent_retries`](Grpc::transparent_retries) turns off (rule TR-8), and the retries of connections
    /// that were not made to methods without a policy. [`never_retry`](Self::never_retry) turns off everything.
    pub fn max_attempts(self, attempts: u32) -> Self {
        let cap = attempts.max(DEFAULT_CAP);
        Self { most_attempts: attempts, ..self }.hedges(|hedges| hedges.attempts_cap(cap))
    }

    /// Turns everything off: each call is sent once, whatever the config, its method or the call's own options
    /// say. Nothing of a request is kept.
    ///
    /// The config's timeouts still count, and so does the answer to a call without any config.
    ///
    /// ```
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default()).never_retry();
    /// ```
    pub fn never_retry(self) -> Self {
        Self { never: true, ..self }
    }

    /// Changes the settings of the protocol for retried and for hedged calls alike: classifiers, rules that
    /// choose options, the limits on kept bodies, transparent retries. The two share the bound on all kept
    /// bodies.
    ///
    /// Call it before [`retries`](Self::retries) and [`hedges`](Self::hedges): what one of these changes about the
    /// protocol is replaced.
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

    /// Adds an observer of retried and of hedged calls, after those added before it.
    pub fn observe_with<O: Observer + 'static>(self, observer: O) -> Self {
        let of_retries = Arc::new(observer);
        let of_hedges = Arc::clone(&of_retries);
        self.retries(|retries| {
            retries.observe(move |destination, event| of_retries.on_event(destination, event))
        })
        .hedges(|hedges| {
            hedges.observe(move |destination, event| of_hedges.on_event(destination, event))
        })
    }

    /// Adds a closure as an observer.
    ///
    /// ```
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default())
    ///     .observe(|server, event| eprintln!("{server}: {event}"));
    /// ```
    pub fn observe<F>(self, observer: F) -> Self
    where
        F: Fn(&str, &Event<'_>) + Send + Sync + 'static,
    {
        self.observe_with(observer)
    }

    /// Changes what the config does not speak of in how calls are retried: schedule, hooks, drain time.
    ///
    /// The policy's own schedule and attempts hold for connections that were not made to
    /// methods without a policy.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigLayer};
    ///
    /// let layer = ServiceConfigLayer::new(ServiceConfig::default())
    ///     .retries(|policy| policy.drain_time(Duration::from_millis(10)));
    /// ```
    pub fn retries(self, change: impl FnOnce(Retries) -> Retries) -> Self {
        Self { retries: change(self.retries), ..self }
    }

    /// Changes how calls are hedged, where the config does not say.
    pub fn hedges(self, change: impl FnOnce(Hedges) -> Hedges) -> Self {
        Self { hedges: change(self.hedges), ..self }
    }

    /// The handle.
    pub fn handle(&self) -> &ServiceConfigHandle {
        &self.handle
    }
}

impl<S: Clone> Layer<S> for ServiceConfigLayer {
    type Service = Client<S>;

    fn layer(&self, inner: S) -> Client<S> {
        let policies = (self.retries.clone(), self.hedges.clone());
        let client = Client::new(self.handle.clone(), self.most_attempts, policies, inner);
        match self.never {
            true => client.with_options(CallOptions::new().never_retry()),
            false => client,
        }
    }
}
