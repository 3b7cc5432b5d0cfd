//! The layer and its settings.

use std::time::Duration;

use reattempt_control::{Bulkhead, CircuitBreaker, RetryBudget, Throttle};
use reattempt_core::guard::Guard;
use reattempt_core::{Budget, ConfigError, Recommended, Schedule, Warning};
use reattempt_schedule_exponential::Exponential;
use tower_layer::{Identity, Layer, Stack};

use super::Standard;
use crate::error_mode::BoxedError;
use crate::fallback::FallbackLayer;
use crate::guard::{GuardLayer, GuardProtocol, Guarded};
use crate::policy::RetryPolicy;
use crate::protocol::Http;
use crate::retry::service::Retry;

/// The guards of the standard stack.
pub type StandardGuards = (CircuitBreaker, Bulkhead);

/// The standard stack as one layer: total time, retries, guards, attempt timeout.
///
/// | part, from the outside in | default | set by |
/// |---|---|---|
/// | fallback | none | [`fallback`](Self::fallback) |
/// | throttle of calls | none | [`throttle`](Self::throttle) |
/// | total time of a call | 30 s | [`total_time`](Self::total_time) |
/// | retries | every default of [`RetryPolicy`] | [`retry`](Self::retry) |
/// | circuit breaker | [`CircuitBreaker::rate`] | [`limits`](Self::limits), [`guards`](Self::guards) |
/// | calls in flight for each destination | 64 | [`limits`](Self::limits), [`guards`](Self::guards) |
/// | attempt timeout | 10 s, at most half of the total time | [`attempt_timeout`](Self::attempt_timeout) |
///
/// The attempt timeout is inside the guards. Outside of them, slow attempts would count as abandoned and not as
/// failures, and would not open the breaker.
///
/// A setter checks its value against the settings at that moment.
///
/// While the breaker is open, calls fail at once, except in the last 5 s of the open time (see
/// [refusals](crate::guard#refusals)). An example of settings that fit each other:
///
/// ```
/// use std::time::Duration;
/// use reattempt::RetryPolicy;
/// use reattempt::standard::StandardLayer;
///
/// let layer = StandardLayer::http()
///     .total_time(Duration::from_secs(8))?
///     .attempt_timeout(Duration::from_secs(2))?
///     .retry(RetryPolicy::http().max_elapsed(Duration::from_secs(4)).boxed_errors())?;
/// # Ok::<_, reattempt::error::ConfigError>(())
/// ```
///
/// ```
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::standard::StandardLayer;
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(StandardLayer::http())
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
/// ```
#[derive(Debug, Clone)]
pub struct StandardLayer<
    G = StandardGuards,
    K = Http,
    D = Exponential,
    B = RetryBudget,
    M = BoxedError,
    O = Identity,
> where
    K: GuardProtocol,
    D: Schedule,
{
    policy: RetryPolicy<K, D, B, M>,
    guards: GuardLayer<G, K, M>,
    total_time: Duration,
    /// Absent if the user has not set it.
    attempt_timeout: Option<Duration>,
    /// The time over which the breaker counts; zero if it counts without an end.
    window: Duration,
    /// The layers around the stack.
    outer: O,
}

const TOTAL_TIME: Duration = Duration::from_secs(30);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const IN_FLIGHT: u32 = 64;

impl StandardLayer {
    /// Creates the stack for HTTP requests, reqwest's included.
    pub fn http() -> Self {
        Self::new(RetryPolicy::http().boxed_errors())
    }
}

impl<K, D, B, M> StandardLayer<StandardGuards, K, D, B, M>
where
    K: GuardProtocol + Clone,
    D: Schedule,
{
    /// Creates the stack around a retry policy, with the default of every other part.
    pub(crate) fn new(policy: RetryPolicy<K, D, B, M>) -> Self {
        let breaker = CircuitBreaker::rate();
        let window = breaker.window();
        let guards = (breaker, Bulkhead::new(IN_FLIGHT));
        let protocol = policy.settings.protocol.clone();
        let guards = GuardLayer::of(protocol, guards).attempt_timeout(ATTEMPT_TIMEOUT);
        let (total_time, attempt_timeout, outer) = (TOTAL_TIME, None, Identity::new());
        Self { policy, guards, total_time, attempt_timeout, window, outer }
    }
}

impl<K, D, B, M, O> StandardLayer<StandardGuards, K, D, B, M, O>
where
    K: GuardProtocol + Clone,
    D: Schedule,
{
    /// Replaces the circuit breaker and the limit on calls in flight.
    ///
    /// ```
    /// use reattempt::guard::{Bulkhead, CircuitBreaker};
    /// use reattempt::standard::StandardLayer;
    ///
    /// let breaker = CircuitBreaker::rate();
    /// let layer = StandardLayer::http().limits(breaker.clone(), Bulkhead::new(16))?;
    /// # Ok::<_, reattempt::error::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the breaker's `interval` is below twice the `attempt_timeout`: it would forget attempts that
    /// are under way.
    pub fn limits(self, breaker: CircuitBreaker, bulkhead: Bulkhead) -> Result<Self, ConfigError> {
        let window = breaker.window();
        Self { window, ..self.guards((breaker, bulkhead)) }.checked()
    }
}

impl<G, K, D, B, M> StandardLayer<G, K, D, B, M>
where
    G: Guard,
    K: GuardProtocol + Clone,
    D: Schedule,
{
    /// Replaces the retry policy. The guards then classify outcomes by the policy's protocol. Call it before
    /// [`throttle`](Self::throttle) and [`fallback`](Self::fallback).
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use reattempt::standard::StandardLayer;
    ///
    /// let policy = RetryPolicy::http().max_attempts(5).boxed_errors();
    /// let layer = StandardLayer::http().retry(policy)?;
    /// # Ok::<_, reattempt::error::ConfigError>(())
    /// ```
    ///
    /// The policy needs [`boxed_errors`](RetryPolicy::boxed_errors) if it is one for HTTP.
    ///
    /// # Errors
    /// Returns an error if the policy has an attempt timeout of its own, which would stand outside the guards.
    pub fn retry<E: Schedule, C: Budget>(
        self,
        policy: RetryPolicy<K, E, C, M>,
    ) -> Result<StandardLayer<G, K, E, C, M>, ConfigError> {
        let guards = self.guards.with_protocol(policy.settings.protocol.clone());
        let Self { total_time, attempt_timeout, window, outer, .. } = self;
        StandardLayer { policy, guards, total_time, attempt_timeout, window, outer }.checked()
    }
}

impl<G, K, D, B, M, O> StandardLayer<G, K, D, B, M, O>
where
    G: Guard,
    K: GuardProtocol + Clone,
    D: Schedule,
{
    /// Adds a throttle of calls around the retries: a call that it refuses is not sent at all.
    ///
    /// The throttle classifies outcomes as the retry policy does. To throttle attempts, put one among the
    /// [`guards`](Self::guards).
    ///
    /// ```
    /// use reattempt::guard::Throttle;
    /// use reattempt::standard::StandardLayer;
    ///
    /// let layer = StandardLayer::http().throttle(Throttle::new());
    /// ```
    #[expect(clippy::type_complexity, reason = "the layers around the stack are in its type")]
    pub fn throttle(
        self,
        throttle: Throttle,
    ) -> StandardLayer<G, K, D, B, M, Stack<GuardLayer<Throttle, K, M>, O>> {
        let throttle = GuardLayer::of(self.policy.settings.protocol.clone(), throttle);
        self.around(|outer| Stack::new(throttle, outer))
    }

    /// Adds a fallback around everything else. It classifies outcomes by its own protocol value.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Response;
    /// use reattempt::fallback::FallbackLayer;
    /// use reattempt::standard::StandardLayer;
    ///
    /// let no_offers = |_: &_| Some(Response::new(Bytes::from_static(b"[]")));
    /// let layer = StandardLayer::http().fallback(FallbackLayer::http(no_offers));
    /// ```
    #[expect(clippy::type_complexity, reason = "the layers around the stack are in its type")]
    pub fn fallback<F>(
        self,
        fallback: FallbackLayer<F, K>,
    ) -> StandardLayer<G, K, D, B, M, Stack<O, FallbackLayer<F, K>>> {
        self.around(|outer| Stack::new(outer, fallback))
    }

    fn around<P>(self, outer: impl FnOnce(O) -> P) -> StandardLayer<G, K, D, B, M, P> {
        let Self { policy, guards, total_time, attempt_timeout, window, .. } = self;
        let outer = outer(self.outer);
        StandardLayer { policy, guards, total_time, attempt_timeout, window, outer }
    }

    /// Replaces all guards by another guard, or a pair of guards. Their settings are not checked against the others.
    pub fn guards<H: Guard>(self, guards: H) -> StandardLayer<H, K, D, B, M, O> {
        let guards = self.guards.with_guard(guards);
        StandardLayer {
            policy: self.policy,
            guards,
            total_time: self.total_time,
            attempt_timeout: self.attempt_timeout,
            window: Duration::ZERO,
            outer: self.outer,
        }
    }

    /// Sets the most time for a call, all its attempts and waits included. Default 30 s.
    ///
    /// # Errors
    /// Returns an error unless `attempt_timeout`, set or by default, is below it and at most half of the breaker's
    /// `interval`.
    #[doc(alias("timeout", "deadline"))]
    pub fn total_time(self, total_time: Duration) -> Result<Self, ConfigError> {
        Self { total_time, ..self }.checked()
    }

    /// Sets the most time for each attempt, up to the head of its response. Default: 10 s, or half of the total time if
    /// that is less.
    ///
    /// # Errors
    /// Returns an error unless it is below `total_time`, and at most half of the breaker's `interval`.
    pub fn attempt_timeout(self, timeout: Duration) -> Result<Self, ConfigError> {
        Self { attempt_timeout: Some(timeout), ..self }.checked()
    }

    /// Returns a warning for each setting outside of its recommended range: those of the retry policy and the guards,
    /// and the total time.
    ///
    /// ```
    /// use reattempt::guard::{Bulkhead, CircuitBreaker};
    /// use reattempt::standard::StandardLayer;
    ///
    /// assert!(StandardLayer::http().validate().is_empty());
    /// let breaker = CircuitBreaker::rate().failure_ratio(0.9)?;
    /// let warnings = StandardLayer::http().limits(breaker, Bulkhead::new(64))?.validate();
    /// assert_eq!(warnings[0].to_string(), "`failure_ratio` is 0.9 (recommended: 0.3 to 0.7, usually 0.5)");
    /// # Ok::<_, reattempt::error::ConfigError>(())
    /// ```
    pub fn validate(&self) -> Vec<Warning>
    where
        B: Budget,
    {
        let total_time = Recommended::DEADLINE.time("total_time", self.total_time);
        let warnings = [self.policy.validate(), self.guards.guard().validate()].concat();
        warnings.into_iter().chain(total_time).collect()
    }

    /// Derives the default of the attempt timeout, and checks all settings against each other.
    fn checked(self) -> Result<Self, ConfigError> {
        let text = |time: Duration| format!("{time:?}");
        if let Some(own) = self.policy.settings.attempt_timeout {
            let allowed = "unset: `attempt_timeout` of the stack stands inside the guards";
            return Err(ConfigError::new("RetryPolicy::attempt_timeout", text(own), allowed));
        }
        let default = ATTEMPT_TIMEOUT.min(self.total_time / 2);
        let timeout = self.attempt_timeout.unwrap_or(default);
        if timeout >= self.total_time {
            return Err(ConfigError::new("attempt_timeout", text(timeout), "below `total_time`"));
        }
        if !self.window.is_zero() && self.window < timeout.saturating_mul(2) {
            let allowed = "at least twice `attempt_timeout`";
            return Err(ConfigError::new("CircuitBreaker::interval", text(self.window), allowed));
        }
        Ok(Self { guards: self.guards.attempt_timeout(timeout), ..self })
    }
}

impl<S, G, K, D, B, M, O> Layer<S> for StandardLayer<G, K, D, B, M, O>
where
    S: Clone,
    K: GuardProtocol + Clone,
    D: Schedule,
    O: Layer<Standard<Retry<Guarded<S, G, K, M>, RetryPolicy<K, D, B, M>>>>,
    RetryPolicy<K, D, B, M>: Clone,
{
    type Service = O::Service;

    fn layer(&self, inner: S) -> Self::Service {
        let retry = Retry::new(self.policy.clone(), self.guards.layer(inner));
        self.outer.layer(Standard::new(retry, self.total_time))
    }
}
