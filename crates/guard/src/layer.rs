//! The layer that adds a guard to a client, and its settings.

use std::error::Error;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::Guard;
use reattempt_core::{Classification, Combined, Warning};
use reattempt_engine::Http;
use reattempt_engine::error::BoxedError;
use reattempt_engine::observe::{Event, Observer};
use reattempt_engine::protocol::{CloneRequest, RequestProtocol};
use reattempt_engine::wall::{add_observer, protocol_setters};
use tower_layer::Layer;

use super::service::Guarded;
use super::shared::Shared;

/// A layer whose guard admits or refuses every attempt.
///
/// The layer's clones and the services that it creates share the guard. The error type is tower's `BoxError`, so an
/// outer retry layer needs [`boxed_errors`](reattempt_engine::RetryPolicy::boxed_errors). If the attempt was refused,
/// the error's source chain contains a [`Refused`](super::Refused). If the protocol has a response for refusals, the
/// call returns that response, and the layer keeps the inner service's error type.
///
/// ```
/// use reattempt::guard::{CircuitBreaker, GuardLayer};
/// use reattempt::{RetryLayer, RetryPolicy};
/// use tower::ServiceBuilder;
///
/// let breaker = CircuitBreaker::rate();
/// let builder = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryPolicy::http().boxed_errors()))
///     .layer(GuardLayer::http(breaker.clone()));
/// ```
pub struct GuardLayer<G, P = Http, Mode = <P as RequestProtocol>::Errors>
where
    P: RequestProtocol,
{
    shared: Shared<G, P>,
    mode: PhantomData<fn() -> Mode>,
}

impl<G: Guard> GuardLayer<G> {
    /// Creates a layer that guards HTTP requests, including [reqwest's](super#reqwest), with the defaults of [`Http`].
    pub fn http(guard: G) -> Self {
        Self::with(Http::new(), guard)
    }
}

impl<G: Guard, P: RequestProtocol> GuardLayer<G, P> {
    /// Creates a layer with a custom protocol value, for example with a custom classification or destination key.
    /// Several layers may share the value.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::guard::{CircuitBreaker, GuardLayer};
    /// use reattempt::{Http, Verdict};
    ///
    /// // This service responds with 500 to requests that it cannot parse.
    /// let http = Http::new().on_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Success);
    /// let layer = GuardLayer::with(http, CircuitBreaker::rate());
    /// ```
    pub fn with(protocol: P, guard: G) -> Self {
        Self::of(protocol, guard)
    }
}

impl<G: Guard, C: Send + Sync + 'static> GuardLayer<G, CloneRequest<C>> {
    /// Creates a layer that guards calls to any service. `classifier` classifies the outcomes. All calls share one
    /// state, because such requests have no destination.
    ///
    /// A response with a permanent verdict is recorded as served, and an error with a permanent verdict as a failure.
    ///
    /// ```
    /// use std::error::Error;
    /// use reattempt::Verdict;
    /// use reattempt::guard::{CircuitBreaker, GuardLayer};
    ///
    /// let layer = GuardLayer::classified(
    ///     |outcome: Result<&u32, &(dyn Error + 'static)>| match outcome {
    ///         Ok(_) => Verdict::Success,
    ///         Err(_) => Verdict::Permanent,
    ///     },
    ///     CircuitBreaker::rate(),
    /// );
    /// ```
    pub fn classified<Response, V>(classifier: C, guard: G) -> Self
    where
        C: Fn(Result<&Response, &(dyn Error + 'static)>) -> V,
        V: Into<Classification>,
    {
        Self::with(CloneRequest::new(classifier), guard)
    }
}

/// The HTTP settings that affect guards.
///
/// ```
/// use http::StatusCode;
/// use reattempt::Verdict;
/// use reattempt::guard::{CircuitBreaker, GuardLayer};
///
/// // This service responds with 500 to requests that it cannot parse.
/// let layer = GuardLayer::http(CircuitBreaker::rate())
///     .on_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Success);
/// ```
impl<G: Guard, Mode> GuardLayer<G, Http, Mode> {
    protocol_setters!(Http: reading, http);
}

/// Settings for every protocol.
impl<G: Guard, P: RequestProtocol, Mode> GuardLayer<G, P, Mode> {
    fn shared(shared: Shared<G, P>) -> Self {
        Self { shared, mode: PhantomData }
    }

    /// Creates a layer with a protocol and the error mode `Mode`.
    #[doc(hidden)]
    pub fn of(protocol: P, guard: G) -> Self {
        Self::shared(Shared::new(protocol, guard))
    }

    /// Changes the protocol's settings, such as its classification and destination key.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::Verdict;
    /// use reattempt::guard::{CircuitBreaker, GuardLayer};
    ///
    /// let layer = GuardLayer::http(CircuitBreaker::rate())
    ///     .protocol(|http| http.on_status(StatusCode::INTERNAL_SERVER_ERROR, Verdict::Success));
    /// ```
    pub fn protocol(self, change: impl FnOnce(P) -> P) -> Self {
        let protocol = change(self.shared.protocol);
        Self::shared(Shared { protocol, ..self.shared })
    }

    /// Returns a layer with the same settings and a different guard.
    #[doc(hidden)]
    pub fn with_guard<H: Guard>(self, guard: H) -> GuardLayer<H, P, Mode> {
        let Shared { protocol, observer, attempt_timeout, serves, .. } = self.shared;
        let guard = Arc::new(guard);
        GuardLayer::shared(Shared { guard, protocol, observer, attempt_timeout, serves })
    }

    /// Configures the layer for use in front of a server. A call that is dropped at its deadline is then recorded as
    /// served, because the caller chose the deadline.
    pub(crate) fn before_server(mut self) -> Self {
        self.shared.serves = true;
        self
    }

    /// Sets the time limit for each attempt, up to the response head. Default: no limit.
    ///
    /// The guards record a timeout as [unavailable](super::contract::Health::Unavailable). With tower's `Timeout`
    /// outside the layer, they would record an abandoned attempt instead. If the limit is above 30 s, a circuit
    /// breaker's probe keeps its place until the limit has passed. The call fails with a
    /// [`TimedOut`](reattempt_engine::TimedOut) or the protocol's response.
    #[doc(alias = "timeout")]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.shared.attempt_timeout = Some(timeout);
        self
    }

    /// Returns a warning for each unusual guard setting, and for an [`attempt_timeout`](Self::attempt_timeout) of zero.
    ///
    /// ```
    /// use reattempt::guard::{Bulkhead, GuardLayer};
    ///
    /// let warnings = GuardLayer::http(Bulkhead::new(0)).validate();
    /// assert_eq!(warnings[0].to_string(), "`limit` is 0 (recommended: at least 1, usually 64)");
    /// ```
    pub fn validate(&self) -> Vec<Warning> {
        let combined = Combined { attempt_timeout: self.shared.attempt_timeout, ..Combined::default() };
        [self.guard().validate(), combined.validate()].concat()
    }

    /// Returns the settings that services share.
    #[doc(hidden)]
    pub fn parts(&self) -> &Shared<G, P> {
        &self.shared
    }

    /// Returns the guard.
    #[doc(hidden)]
    pub fn guard(&self) -> &G {
        &self.shared.guard
    }

    /// Adds a closure as an observer; [`observe_with`](Self::observe_with) adds any other observer.
    ///
    /// ```
    /// use reattempt::guard::{CircuitBreaker, GuardLayer};
    ///
    /// let layer = GuardLayer::http(CircuitBreaker::rate()).observe(|destination, event| {
    ///     eprintln!("{destination}: {event}");
    /// });
    /// ```
    pub fn observe<F: Fn(&str, &Event<'_>) + Send + Sync + 'static>(self, observer: F) -> Self {
        self.observe_with(observer)
    }

    /// Notifies an [`Observer`](reattempt_engine::observe::Observer) of attempts that wait or are refused, after
    /// earlier observers.
    pub fn observe_with(mut self, observer: impl Observer + 'static) -> Self {
        add_observer(&mut self.shared.observer, observer);
        self
    }

    /// Changes the error type to tower's `BoxError`.
    ///
    /// This is needed only for a protocol whose refusals are responses. By default, such a protocol keeps the inner
    /// service's error type, which must then implement `Error`. A `BoxError` does not implement it.
    pub fn boxed_errors(self) -> GuardLayer<G, P, BoxedError> {
        GuardLayer::shared(self.shared)
    }
}

impl<S, G, P: RequestProtocol + Clone, Mode> Layer<S> for GuardLayer<G, P, Mode> {
    type Service = Guarded<S, G, P, Mode>;

    fn layer(&self, inner: S) -> Self::Service {
        Guarded::new(Arc::new(self.shared.clone()), inner)
    }
}

impl<G, P: RequestProtocol + Clone, Mode> Clone for GuardLayer<G, P, Mode> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone(), mode: PhantomData }
    }
}

impl<G: fmt::Debug, P: RequestProtocol + fmt::Debug, Mode> fmt::Debug for GuardLayer<G, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardLayer")
            .field("guard", &self.shared.guard)
            .field("protocol", &self.shared.protocol)
            .finish_non_exhaustive()
    }
}
