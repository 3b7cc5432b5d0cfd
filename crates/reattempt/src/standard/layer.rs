//! The standard stack's layer, its settings, and the check that they do not contradict each other.

use std::time::Duration;

use reattempt_control::{Bulkhead, CircuitBreaker, RetryBudget, Throttle};
use reattempt_core::guard::Guard;
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Budget, Combined, ConfigError, Recommended, Schedule, Warning};
use reattempt_engine::error::BoxedError;
use reattempt_engine::hedge::HedgePolicy;
use reattempt_engine::protocol::RequestProtocol;
use reattempt_engine::{Http, RetryPolicy};
use reattempt_fallback::FallbackLayer;
use reattempt_guard::{GuardLayer, Guarded};
use reattempt_schedule_exponential::Exponential;
use tower_layer::{Identity, Layer, Stack};

use super::{AttemptPolicy, Standard};

/// The guards of the standard stack.
pub type StandardGuards = (CircuitBreaker, Bulkhead);

/// The standard stack as one layer: total time, retries, guards, attempt timeout.
///
/// | part, from the outside in | default | set by |
/// |---|---|---|
/// | fallback | none | [`fallback`](Self::fallback) |
/// | call throttle | none | [`throttle`](Self::throttle) |
/// | total time of a call | 30 s | [`total_time`](Self::total_time) |
/// | retries or hedges | retries, with the defaults of [`RetryPolicy`] | [`retry`](Self::retry), [`hedge`](Self::hedge) |
/// | circuit breaker | [`CircuitBreaker::rate`] | [`limits`](Self::limits), [`guards`](Self::guards) |
/// | several servers | none | [`endpoints`](StandardLayer::endpoints) |
/// | calls in flight per destination | 64 | [`limits`](Self::limits), [`guards`](Self::guards) |
/// | attempt timeout | 10 s, at most half of the total time | [`attempt_timeout`](Self::attempt_timeout) |
///
/// The attempt timeout is inside the guards, which count it as a server failure. Outside the guards, tower's `Timeout`
/// would look like a caller that cancels, and would never open the breaker.
///
/// End the chain of setters with [`checked`](Self::checked), which returns an error if two settings contradict each
/// other.
///
/// While the breaker is open, calls fail immediately, except in the last second before a probe (see
/// [refusals](reattempt_guard#refusals)). The settings in this example are compatible:
///
/// ```
/// use std::time::Duration;
/// use reattempt::RetryPolicy;
/// use reattempt::standard::StandardLayer;
///
/// let layer = StandardLayer::http()
///     .total_time(Duration::from_secs(8))
///     .attempt_timeout(Duration::from_secs(2))
///     .retry(RetryPolicy::http().max_elapsed(Duration::from_secs(4)).boxed_errors())
///     .checked()?;
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
    Policy = RetryPolicy<Http, Exponential, RetryBudget, BoxedError>,
    O = Identity,
    I = Identity,
> where
    Policy: AttemptPolicy,
{
    pub(super) policy: Policy,
    pub(super) guards: GuardLayer<G, Policy::Protocol, Policy::Errors>,
    pub(super) times: Times,
    /// The layers around the stack.
    pub(super) outer: O,
    /// The layers inside the guards.
    pub(super) inner: I,
    /// The warnings of the inner layers.
    pub(super) inner_warnings: Vec<Warning>,
}

/// The stack's time limits, and the facts about its parts that are needed to check them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    total: Duration,
    attempt: Duration,
    /// `true` if the user has not set the attempt timeout, which is then derived from the total time.
    attempt_is_derived: bool,
    /// The breaker's window, or zero if it has none.
    window: Duration,
    /// `true` if the user has not set the breaker.
    pub(super) breaker_is_default: bool,
    /// The endpoints' own attempt timeout, if they have one.
    pub(super) endpoint: Option<Duration>,
}

const TOTAL_TIME: Duration = Duration::from_secs(30);
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
const IN_FLIGHT: u32 = 64;

impl StandardLayer {
    /// Creates the stack for HTTP requests, including [reqwest's](reattempt_guard#reqwest).
    pub fn http() -> Self {
        Self::new(RetryPolicy::http().boxed_errors())
    }
}

impl<Policy: AttemptPolicy> StandardLayer<StandardGuards, Policy> {
    /// Creates the stack around a policy, with defaults for all other parts.
    pub(crate) fn new(policy: Policy) -> Self {
        let breaker = CircuitBreaker::rate();
        let times = Times {
            total: TOTAL_TIME,
            attempt: ATTEMPT_TIMEOUT,
            attempt_is_derived: true,
            window: breaker.window(),
            breaker_is_default: true,
            endpoint: None,
        };
        let guards = (breaker, Bulkhead::new(IN_FLIGHT));
        let guards = GuardLayer::of(policy.shared_protocol(), guards);
        let guards = guards.attempt_timeout(ATTEMPT_TIMEOUT);
        Self { policy, guards, times, outer: Identity::new(), inner: Identity::new(), inner_warnings: Vec::new() }
    }
}

impl<Policy: AttemptPolicy, O> StandardLayer<StandardGuards, Policy, O> {
    /// Replaces the circuit breaker and the limit on calls in flight. Call this before [`endpoints`](Self::endpoints).
    ///
    /// ```
    /// use reattempt::guard::{Bulkhead, CircuitBreaker};
    /// use reattempt::standard::StandardLayer;
    ///
    /// let breaker = CircuitBreaker::rate();
    /// let layer = StandardLayer::http().limits(breaker.clone(), Bulkhead::new(16));
    /// ```
    pub fn limits(self, breaker: CircuitBreaker, bulkhead: Bulkhead) -> Self {
        let times = Times { window: breaker.window(), breaker_is_default: false, ..self.times };
        Self { times, ..self.guards((breaker, bulkhead)) }
    }
}

impl<G: Guard, Policy: AttemptPolicy> StandardLayer<G, Policy> {
    /// Uses this retry policy. The guards then classify outcomes with the policy's protocol. Call this before
    /// [`endpoints`](StandardLayer::endpoints), [`throttle`](Self::throttle) and [`fallback`](Self::fallback).
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use reattempt::standard::StandardLayer;
    ///
    /// let policy = RetryPolicy::http().max_attempts(5).boxed_errors();
    /// let layer = StandardLayer::http().retry(policy);
    /// ```
    ///
    /// An HTTP policy needs [`boxed_errors`](RetryPolicy::boxed_errors).
    pub fn retry<Backoff: Schedule, B: Budget>(
        self,
        policy: RetryPolicy<Policy::Protocol, Backoff, B, Policy::Errors>,
    ) -> StandardLayer<G, RetryPolicy<Policy::Protocol, Backoff, B, Policy::Errors>> {
        self.by(policy)
    }

    /// Uses this hedging policy instead of retries: a slow call is sent again while its first attempt is in flight.
    /// Read the hazards of [`HedgeLayer`](reattempt_engine::hedge::HedgeLayer) first. Call this before
    /// [`endpoints`](StandardLayer::endpoints), [`throttle`](Self::throttle) and [`fallback`](Self::fallback).
    ///
    /// A hedge does not wait for a guard. If a guard refuses it, the first attempt continues. After a failed attempt,
    /// the next one is sent immediately, so the policy also retries failures, without backoff.
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::time::Duration;
    /// use bytes::Bytes;
    /// use http::{Request, Response};
    /// use http_body_util::Full;
    /// use reattempt::{ReplayBody, Report};
    /// use reattempt::hedge::HedgePolicy;
    /// use reattempt::retry::AttemptNumber;
    /// use reattempt::standard::StandardLayer;
    /// use tower::{Layer, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), tower::BoxError> {
    /// // A server whose first response takes a minute.
    /// let server = service_fn(|request: Request<ReplayBody<Full<Bytes>>>| async move {
    ///     if request.extensions().get::<AttemptNumber>().is_none() {
    ///         tokio::time::sleep(Duration::from_secs(60)).await;
    ///     }
    ///     Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello")))
    /// });
    ///
    /// let policy = HedgePolicy::http().delay(Duration::from_millis(50)).boxed_errors();
    /// let client = StandardLayer::http().hedge(policy).layer(server);
    /// let request = Request::get("http://one.example/").body(Full::<Bytes>::default())?;
    /// let response = client.send(request).await?;
    /// assert_eq!(Report::of(&response).and_then(Report::winner), Some(2));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An HTTP policy needs [`boxed_errors`](HedgePolicy::boxed_errors).
    pub fn hedge<B: Budget>(
        self,
        policy: HedgePolicy<Policy::Protocol, B, Policy::Errors>,
    ) -> StandardLayer<G, HedgePolicy<Policy::Protocol, B, Policy::Errors>> {
        self.by(policy)
    }

    fn by<Q>(self, policy: Q) -> StandardLayer<G, Q>
    where
        Q: AttemptPolicy<Protocol = Policy::Protocol, Errors = Policy::Errors>,
    {
        let guards = self.guards.protocol(|_| policy.shared_protocol());
        let Self { times, outer, inner, inner_warnings, .. } = self;
        StandardLayer { policy, guards, times, outer, inner, inner_warnings }
    }
}

impl<G, P, Backoff, B, Mode, O, I> StandardLayer<G, RetryPolicy<P, Backoff, B, Mode>, O, I>
where
    G: Guard,
    P: RequestProtocol + Clone,
    Backoff: Schedule + Clone,
    B: Budget + Clone,
{
    /// Sets the maximum number of attempts, including the first. It is [`RetryPolicy::max_attempts`] of the stack's
    /// policy. [`retry`](StandardLayer::retry) replaces the whole policy.
    pub fn max_attempts(self, attempts: impl Into<Option<u32>>) -> Self {
        Self { policy: self.policy.max_attempts(attempts), ..self }
    }
}

impl<G: Guard, Policy: AttemptPolicy, O, I> StandardLayer<G, Policy, O, I> {
    /// Adds a call throttle outside the retries, which refuses whole calls before anything is sent.
    ///
    /// The throttle classifies outcomes like the attempts' policy. To throttle attempts instead, add a throttle to the
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
    ) -> StandardLayer<G, Policy, Stack<GuardLayer<Throttle, Policy::Protocol, Policy::Errors>, O>, I> {
        let throttle = GuardLayer::of(self.policy.shared_protocol(), throttle);
        self.around(|outer| Stack::new(throttle, outer))
    }

    /// Adds a fallback around everything else. The fallback classifies outcomes with its own protocol value.
    ///
    /// A backup's call starts after the stack's own call has ended, so it is not part of the total time. Set separate
    /// time limits for it, for example with its own standard stack.
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
        fallback: FallbackLayer<F, Policy::Protocol>,
    ) -> StandardLayer<G, Policy, Stack<O, FallbackLayer<F, Policy::Protocol>>, I> {
        self.around(|outer| Stack::new(outer, fallback))
    }

    fn around<N>(self, outer: impl FnOnce(O) -> N) -> StandardLayer<G, Policy, N, I> {
        let Self { policy, guards, times, inner, inner_warnings, .. } = self;
        StandardLayer { policy, guards, times, outer: outer(self.outer), inner, inner_warnings }
    }

    /// Replaces all guards with another guard or a pair of guards. The settings of the new guards are not checked
    /// against those of the stack.
    ///
    /// After [`endpoints`](Self::endpoints), this replaces only the breaker. Each endpoint keeps its own limit on calls
    /// in flight.
    pub fn guards<H: Guard>(self, guards: H) -> StandardLayer<H, Policy, O, I> {
        let guards = self.guards.with_guard(guards);
        let times = Times { window: Duration::ZERO, breaker_is_default: false, ..self.times };
        let Self { policy, outer, inner, inner_warnings, .. } = self;
        StandardLayer { policy, guards, times, outer, inner, inner_warnings }
    }

    /// Sets the time limit for a call, including all attempts and delays. Default: 30 s.
    ///
    /// A layer or service inside the stack gets the resulting deadline from [`Deadline::of`](crate::Deadline::of).
    #[doc(alias("timeout", "deadline"))]
    #[must_use = "the setting is in the layer that is returned"]
    pub fn total_time(self, total_time: Duration) -> Self {
        let times = Times { total: total_time, ..self.times };
        let derived = ATTEMPT_TIMEOUT.min(total_time / 2);
        self.timed(Times { attempt: if times.attempt_is_derived { derived } else { times.attempt }, ..times })
    }

    /// Sets the time limit for each attempt, up to the response head. Default: 10 s, or half of the total time if that
    /// is less.
    #[must_use = "the setting is in the layer that is returned"]
    pub fn attempt_timeout(self, timeout: Duration) -> Self {
        let times = self.times;
        self.timed(Times { attempt: timeout, attempt_is_derived: false, ..times })
    }

    fn timed(self, times: Times) -> Self {
        Self { guards: self.guards.attempt_timeout(times.attempt), times, ..self }
    }

    /// Returns the layer if no two of its settings contradict each other.
    ///
    /// Call this at the end of the chain. Without this check, the shorter of two time limits applies, and a breaker
    /// whose window is too short may never open.
    ///
    /// # Errors
    /// Returns an error unless all of these conditions hold:
    ///
    /// * The `attempt_timeout`, explicit or default, is above 0 and below `total_time`.
    /// * The breaker's `interval` is at least twice the `attempt_timeout`. Otherwise, the breaker would forget attempts
    ///   in flight.
    /// * The retry policy has no attempt timeout, which would be outside the guards.
    /// * A fixed hedge [`delay`](HedgePolicy::delay) is below the `attempt_timeout`.
    /// * The endpoints' own [`attempt_timeout`](reattempt_endpoints::Endpoints::attempt_timeout) is below that of the
    ///   stack.
    pub fn checked(self) -> Result<Self, ConfigError> {
        self.combined().check()?;
        Ok(self)
    }

    /// Returns a warning for each setting of the policy, the guards or the total time that is outside its recommended
    /// range, and for each two settings that contradict each other: those of [`checked`](Self::checked), and limits of
    /// the retries that another limit ends before.
    ///
    /// ```
    /// use reattempt::guard::{Bulkhead, CircuitBreaker};
    /// use reattempt::standard::StandardLayer;
    ///
    /// assert!(StandardLayer::http().validate().is_empty());
    /// let breaker = CircuitBreaker::rate().failure_ratio(0.9);
    /// let warnings = StandardLayer::http().limits(breaker, Bulkhead::new(64)).validate();
    /// assert_eq!(warnings[0].to_string(), "`failure_ratio` is 0.9 (recommended: 0.3 to 0.7, usually 0.5)");
    /// ```
    pub fn validate(&self) -> Vec<Warning> {
        let total_time = Recommended::DEADLINE.time("total_time", self.times.total);
        let guards = self.guards.guard().validate();
        let of_parts = [self.policy.warnings(), guards, self.inner_warnings.clone(), self.combined().validate()];
        of_parts.into_iter().flatten().chain(total_time).collect()
    }

    /// Returns the settings that can contradict each other.
    fn combined(&self) -> Combined {
        let Times { total, attempt, window, endpoint, .. } = self.times;
        Combined {
            attempt_timeout: Some(attempt),
            endpoint_attempt_timeout: endpoint,
            breaker_interval: Some(window).filter(|window| !window.is_zero()),
            total_time: Some(total),
            ..self.policy.combined()
        }
    }
}

/// Shows the time limits, the policy and the guards. The layers around the stack and inside the guards are not shown.
impl<G: Guard + Inspect, Policy: AttemptPolicy + Inspect, O, I> Inspect for StandardLayer<G, Policy, O, I> {
    fn inspect(&self, now: Duration) -> Part {
        Part::new("standard", "")
            .field("total_time", self.times.total)
            .field("attempt_timeout", self.times.attempt)
            .parts([self.policy.inspect(now), self.guards.guard().inspect(now)])
    }
}

impl<S, G, Policy, O, I> Layer<S> for StandardLayer<G, Policy, O, I>
where
    I: Layer<S, Service: Clone>,
    Policy: AttemptPolicy,
    O: Layer<Standard<Policy::Client<Guarded<I::Service, G, Policy::Protocol, Policy::Errors>>>>,
{
    type Service = O::Service;

    fn layer(&self, inner: S) -> Self::Service {
        let client = self.policy.clone().client(self.guards.layer(self.inner.layer(inner)));
        self.outer.layer(Standard::new(client, self.times.total))
    }
}
