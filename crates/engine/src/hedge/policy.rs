//! Hedging settings: protocol, attempts, delay, limits, budget and observers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::{Latencies, RetryBudget};
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Budget, Limits, Warning};

use crate::call::observe;
use crate::call::observe::{Event, Observer};
use crate::error_mode::BoxedError;
use crate::protocol::{Http, Protocol, protocol_setters};

/// The default cap on attempts.
// CALL-8
const DEFAULT_CAP: u32 = 5;

/// A policy that decides which calls are hedged, when, and how often.
///
/// **Hedging multiplies load, and the server processes requests more than once**: see the hazards of
/// [`HedgeLayer`](crate::hedge::HedgeLayer).
///
/// The first attempt is sent immediately. While there is no response, another attempt is sent after each `delay`, up to
/// `max_attempts` in total.
///
/// | an attempt ends with | effect |
/// |---|---|
/// | a response that is not retryable: 200, but also 404 | the response wins; the other attempts are dropped before it is returned |
/// | a retryable failure: 503, a lost connection | the next attempt is sent immediately |
/// | a retryable failure in which the server asks for a delay, for example with `Retry-After` | the next attempt is sent after that delay |
/// | a retryable failure in which the server forbids a retry | no further attempt is sent; those in flight continue |
/// | any other error | only this attempt ends; all others continue |
/// | an error in the caller's request body | the call ends |
///
/// If all attempts fail, the call returns the last outcome.
///
/// A refused response is dropped before the next attempt is sent, because that attempt may need its connection. The
/// budget decides before the response is dropped. If the budget refuses the hedge, the call returns the response.
///
/// Hedging requires a tokio runtime with its time driver enabled. Without any runtime, calls are sent but not hedged.
///
/// Clones share the budget and the observed latencies. Policies that are created separately share nothing.
///
/// | setting | default | reason |
/// |---|---|---|
/// | delay | the 95th percentile of observed latencies | at most one call in twenty is slow enough to be hedged |
/// | `max_attempts` | 2 | the hedges of slow calls then add at most 5 % to the load |
/// | `attempts_cap` | 5 | limits the attempts that call options or a method's overrides may set |
/// | `max_elapsed` | 30 s | most callers have given up by then |
/// | `max_server_delay` | 60 s | a server that asks for a longer delay should not get another attempt |
/// | budget | [`RetryBudget::cautious`] for each destination | limits the hedges after errors, which the quantile does not limit |
///
/// ```
/// use std::time::Duration;
/// use reattempt::RetryBudget;
/// use reattempt::hedge::HedgePolicy;
///
/// let by_quantile = HedgePolicy::http().delay_quantile(0.99).budget(RetryBudget::ratio(0.02));
/// let by_the_clock = HedgePolicy::http().delay(Duration::from_millis(250)).max_attempts(3);
/// ```
pub struct HedgePolicy<P: Protocol = Http, B = RetryBudget, Mode = <P as Protocol>::Mode> {
    pub(crate) settings: Arc<Settings<P, B>>,
    mode: PhantomData<fn() -> Mode>,
}

/// The settings of a policy.
pub(crate) type Settings<P, B> = crate::call::settings::Settings<P, Hedges, B>;

/// The settings that only hedges have.
#[derive(Debug, Clone)]
pub(crate) struct Hedges {
    /// The cap on attempts, whatever else is set.
    pub(super) cap: u32,
    pub(super) delay: HedgeDelay,
    pub(super) idempotent: bool,
}

/// The time between two attempts.
#[derive(Debug, Clone)]
pub(super) enum HedgeDelay {
    Fixed(Duration),
    Quantile(Arc<Latencies>),
}

impl HedgePolicy {
    /// Creates a policy that hedges HTTP requests with safe methods, with the defaults listed at [`HedgePolicy`].
    pub fn http() -> Self {
        Self::with(Http::new())
    }
}

impl<P: Protocol> HedgePolicy<P> {
    /// Creates a policy with a custom protocol value, which several policies and layers may share.
    pub fn with(protocol: P) -> Self {
        let delay = HedgeDelay::Quantile(Arc::new(Latencies::p95()));
        let hedges = Hedges { cap: DEFAULT_CAP, delay, idempotent: false };
        let mut settings = Settings::new(protocol, hedges, P::default_budget());
        settings.limits.max_attempts = 2;
        Self::of(settings)
    }
}

/// Returns [`HedgePolicy::http`].
impl Default for HedgePolicy {
    fn default() -> Self {
        Self::http()
    }
}

impl<P: Protocol, B, Mode> HedgePolicy<P, B, Mode> {
    fn of(settings: Settings<P, B>) -> Self {
        Self { settings: Arc::new(settings), mode: PhantomData }
    }

    #[doc(hidden)]
    pub fn protocol_ref(&self) -> &P {
        &self.settings.protocol
    }

    #[doc(hidden)]
    pub fn limits_ref(&self) -> &Limits {
        &self.settings.limits
    }

    /// Returns the budget, for example to read its balance.
    pub fn budget_ref(&self) -> &B {
        &self.settings.budget
    }

    /// Returns a warning for each limit or budget setting outside its recommended range. Such a setting still applies.
    /// There is also a warning for each protocol setting that hedging does not use.
    ///
    /// ```
    /// use reattempt::Http;
    /// use reattempt::hedge::HedgePolicy;
    ///
    /// let http = Http::new().generate_idempotency_keys(true);
    /// assert_eq!(HedgePolicy::with(http).validate()[0].field(), "generate_idempotency_keys");
    /// ```
    pub fn validate(&self) -> Vec<Warning>
    where
        B: Budget,
    {
        let Settings { protocol, limits, budget, .. } = &*self.settings;
        [limits.validate(), budget.validate(), protocol.unused_by_hedging()].concat()
    }

    /// Returns the delay before a hedge, if it is fixed.
    #[doc(hidden)]
    pub fn fixed_delay(&self) -> Option<Duration> {
        match self.settings.strategy.delay {
            HedgeDelay::Fixed(delay) => Some(delay),
            HedgeDelay::Quantile(_) => None,
        }
    }

    /// Returns the current delay before a hedge, or `None` if too few latencies were observed.
    pub fn current_delay(&self) -> Option<Duration> {
        match &self.settings.strategy.delay {
            HedgeDelay::Fixed(delay) => Some(*delay),
            HedgeDelay::Quantile(latencies) => latencies.quantile(),
        }
    }
}

/// Settings for every protocol.
impl<P, B, Mode> HedgePolicy<P, B, Mode>
where
    P: Protocol + Clone,
    B: Clone,
{
    /// Changes the protocol's settings, such as classifiers and replay limits. [`Http`] lists all of them.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::Verdict;
    /// use reattempt::hedge::HedgePolicy;
    ///
    /// let policy = HedgePolicy::http().protocol(|http| http.on_status(StatusCode::LOCKED, Verdict::Permanent));
    /// ```
    pub fn protocol(self, change: impl FnOnce(P) -> P) -> Self {
        self.set(|settings| settings.protocol = change(settings.protocol.clone()))
    }

    /// Sets the maximum number of attempts, including the first. 0 and 1 turn hedging off. Default: 2. Numbers above
    /// the [cap](Self::attempts_cap) are lowered to it.
    // CALL-8
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| settings.limits.max_attempts = attempts)
    }

    /// Sets the cap on attempts. Higher numbers from the policy, a call or a method are lowered to it. Default: 5.
    ///
    /// All attempts may run concurrently, so a cap of 10 allows ten times the load.
    ///
    /// ```
    /// use reattempt::hedge::HedgePolicy;
    /// let policy = HedgePolicy::http().attempts_cap(8).max_attempts(8);
    /// ```
    // CALL-8
    pub fn attempts_cap(self, attempts: u32) -> Self {
        self.set(|settings| settings.strategy.cap = attempts)
    }

    /// Sets a fixed time between two attempts, instead of the quantile. Zero sends all attempts simultaneously, which
    /// multiplies the load by `max_attempts`.
    // HG-2
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.strategy.delay = HedgeDelay::Fixed(delay))
    }

    /// Sets the delay to a running quantile of the latencies of first attempts. Default: 0.95, so a first attempt is
    /// hedged if it is slower than 95 of 100 first attempts. With two attempts per call, the hedges of slow calls then
    /// add at most 5 % to the load; with three, at most 10 %.
    ///
    /// No call is hedged until there are at least 100 samples, and at least ten of them are above the quantile. That
    /// takes 200 samples for 0.95, and 1000 for 0.99. The estimate is at most 6.25 % above the true quantile of the
    /// samples, and never below it. The timer has a resolution of 1 ms. Older samples count less: all weights are
    /// halved after every 2000 samples (for 0.95; 10,000 for 0.99). All calls of the policy share the samples, so use
    /// separate policies for different kinds of calls.
    ///
    /// A first attempt that is slower than the delay is always recorded as a sample. A first attempt that fails sooner
    /// is not recorded. Hedges after a failure are limited only by the budget.
    ///
    /// `quantile` is clamped to between 0.5 and 0.9999, and NaN is treated as 0.5.
    pub fn delay_quantile(self, quantile: f64) -> Self {
        let latencies = Arc::new(Latencies::new(quantile));
        self.set(|settings| settings.strategy.delay = HedgeDelay::Quantile(latencies))
    }

    /// Sets the time from the start of a call after which no further attempt is sent. `None` removes the limit.
    /// Default: 30 s.
    ///
    /// The limit does not interrupt attempts. It does end a hedge's wait for a service that is not ready.
    ///
    /// There is one exception if calls keep the inner service's error type. The wait continues if no attempt is in
    /// flight, the last failed response was already dropped, and there is no error or response to return.
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| settings.limits.max_elapsed = elapsed)
    }

    /// Sets the maximum delay that a server may ask for with `Retry-After`. If it asks for more, no further attempt is
    /// sent. Default: 60 s. A pushback, which is an exact delay from the server, has no such limit.
    // PB-4
    pub fn max_server_delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.limits.max_server_delay = delay)
    }

    /// Sets the budget, which must grant every hedge. Default: [`RetryBudget::cautious`] for each destination.
    ///
    /// If the budget refuses a hedge, the attempts in flight continue, and the call sends no further attempts.
    /// For a hedge of a slow call, the budget gets a failure of the kind
    /// [`Timeout`](crate::schedule::FailureKind::Timeout). If a retry layer uses the same budget, wrap the budget in a
    /// [`SpendOnly`](crate::budget::SpendOnly) here.
    // HG-8
    pub fn budget<T: Budget>(self, budget: T) -> HedgePolicy<P, T, Mode> {
        HedgePolicy::of(self.into_settings().map(|hedges, _| (hedges, budget)))
    }

    /// Changes the error type of calls to tower's `BoxError`, so that a [`Deadline`](crate::Deadline) can end the whole
    /// call with a [`TimedOut`](crate::TimedOut).
    ///
    /// A call whose deadline has already passed is not sent. Without this setting, a deadline prevents further
    /// attempts, and ends the call only if the protocol has a response for that. Inner services with a `BoxError`
    /// require this setting.
    // HG-11
    pub fn boxed_errors(self) -> HedgePolicy<P, B, BoxedError> {
        HedgePolicy::of(self.into_settings())
    }

    /// Adds an observer, which is notified of every event in every call that may be hedged, after the existing
    /// observers. Until the quantile is known, no call is hedged and there are no events.
    ///
    /// Here, [`WillRetry`](Event::WillRetry) means that a hedge was sent. Its `after` is the time since the previous
    /// attempt.
    pub fn observe_with<O: Observer + 'static>(self, observer: O) -> Self {
        self.set(|settings| observe::add_observer(&mut settings.observer, observer))
    }

    /// Adds a closure as an observer; [`observe_with`](Self::observe_with) adds any other observer.
    pub fn observe<F: Fn(&str, &Event<'_>) + Send + Sync + 'static>(self, observer: F) -> Self {
        self.observe_with(observer)
    }

    pub(crate) fn set(self, change: impl FnOnce(&mut Settings<P, B>)) -> Self {
        let mut settings = self.into_settings();
        change(&mut settings);
        Self::of(settings)
    }

    fn into_settings(self) -> Settings<P, B> {
        Arc::try_unwrap(self.settings).unwrap_or_else(|shared| (*shared).clone())
    }
}

/// The HTTP settings that affect hedging.
impl<B: Clone, Mode> HedgePolicy<Http, B, Mode> {
    protocol_setters!(Http: reading, http, telling, sending);

    /// Sets whether PUT and DELETE are hedged as well. Default: `false`, because requests that may be repeated
    /// sequentially may still conflict when they run concurrently.
    ///
    /// An `Idempotency-Key` does not allow hedging, because servers refuse a second request while the first one with
    /// the same key is in flight.
    pub fn idempotent_methods(self, hedged: bool) -> Self {
        self.set(|settings| settings.strategy.idempotent = hedged)
    }
}

impl<P: Protocol, B, Mode> Clone for HedgePolicy<P, B, Mode> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), mode: PhantomData }
    }
}

impl<P: Protocol + fmt::Debug, B: fmt::Debug, Mode> fmt::Debug for HedgePolicy<P, B, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgePolicy")
            .field("protocol", &self.settings.protocol)
            .field("budget", &self.settings.budget)
            .field("limits", &self.settings.limits)
            .field("delay", &self.settings.strategy.delay)
            .finish_non_exhaustive()
    }
}

/// Shows the current delay, the limits and the budget. Its protocol is not shown.
impl<P: Protocol, B: Inspect, Mode> Inspect for HedgePolicy<P, B, Mode> {
    fn inspect(&self, now: Duration) -> Part {
        self.settings.inspect("hedge_policy", now).field_if("delay", self.current_delay())
    }
}
