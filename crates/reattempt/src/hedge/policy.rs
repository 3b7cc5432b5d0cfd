//! The settings of hedging: protocol, attempts, delay, limits, budget, observers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use reattempt_control::{Latencies, RetryBudget};
use reattempt_core::{Budget, ConfigError, Limits, Verdict, Warning};

use crate::call::finish::Client;
use crate::call::observe::{self, Event, Observer};
use crate::call::options::CallOptions;
use crate::error_mode::BoxedError;
use crate::protocol::{Http, Protocol, protocol_setters};

/// The most attempts that a policy allows unless its cap is set (CALL-8).
const DEFAULT_CAP: u32 = 5;

/// A policy that decides which calls are hedged, when, and how often.
///
/// **Hedging multiplies load, and the server processes requests more than once**: see the hazards of
/// [`HedgeLayer`](crate::hedge::HedgeLayer).
///
/// The first attempt is sent at once. While no response has come, another is sent each `delay`, up to `max_attempts` in
/// all.
///
/// | an attempt ends with | what follows |
/// |---|---|
/// | a response that no other attempt would mend: 200, and also 404 | it wins; the other attempts are dropped before the caller gets it |
/// | a failure that another attempt may mend: 503, a lost connection | the next attempt is sent at once |
/// | such a response with a delay, as `Retry-After` gives it | the next attempt is sent after that delay |
/// | such a response that asks for no retry | no further attempt is sent; those under way go on |
/// | any other error | its own attempt is over; those under way go on |
/// | a failure of the request's own body | the call ends |
///
/// If all attempts fail, the caller gets the last outcome.
///
/// A refused response is dropped before the next attempt is prepared, because that may need its connection. The budget
/// decides before that, so if it refuses the hedge, the caller gets the response.
///
/// A wait needs a tokio runtime with its time driver on. Without any runtime, calls are sent and are not hedged.
///
/// A clone shares the budget and the observed latencies with its original. Policies that are built separately share
/// nothing.
///
/// | setting | default | why |
/// |---|---|---|
/// | delay | the 95th percentile of observed latencies | at most one call in twenty is slow enough to be hedged |
/// | `max_attempts` | 2 | slow calls then add at most 5 % of load |
/// | `attempts_cap` | 5 | it bounds the attempts that call options and overrides for a method set |
/// | `max_elapsed` | 30 s | most callers have given up by then |
/// | `max_server_delay` | 60 s | a server that asks for more is better left alone |
/// | budget | [`RetryBudget::cautious`] for each destination | it bounds the hedges that follow errors; the quantile does not |
///
/// ```
/// use std::time::Duration;
/// use reattempt::RetryBudget;
/// use reattempt::hedge::HedgePolicy;
///
/// # fn main() -> Result<(), reattempt::error::ConfigError> {
/// let by_quantile = HedgePolicy::http().delay_quantile(0.99)?.budget(RetryBudget::ratio(0.02)?);
/// let by_the_clock = HedgePolicy::http().delay(Duration::from_millis(250)).max_attempts(3);
/// # Ok(())
/// # }
/// ```
pub struct HedgePolicy<K: Protocol = Http, B = RetryBudget, M = <K as Protocol>::Mode> {
    pub(crate) settings: Arc<Settings<K, B>>,
    mode: PhantomData<fn() -> M>,
}

/// The settings that all clones of a policy share.
pub(crate) struct Settings<K, B> {
    pub(crate) protocol: K,
    pub(crate) budget: B,
    pub(crate) limits: Limits,
    /// The most attempts, whatever else is set.
    pub(super) cap: u32,
    pub(super) delay: HedgeDelay,
    pub(super) idempotent: bool,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

/// The time from one attempt to the next.
#[derive(Debug, Clone)]
pub(super) enum HedgeDelay {
    Fixed(Duration),
    Quantile(Arc<Latencies>),
}

impl HedgePolicy {
    /// Creates the policy that hedges HTTP requests with a safe method, with every default in the table of
    /// [`HedgePolicy`].
    pub fn http() -> Self {
        Self::with(Http::new())
    }
}

impl<K: Protocol> HedgePolicy<K> {
    /// Creates a policy over a protocol with settings of its own, which several policies and layers may share.
    pub fn with(protocol: K) -> Self {
        let mut limits = Limits::default();
        limits.max_attempts = 2;
        Self::of(Settings {
            protocol,
            budget: K::default_budget(),
            limits,
            cap: DEFAULT_CAP,
            delay: HedgeDelay::Quantile(Arc::new(Latencies::p95())),
            idempotent: false,
            observer: None,
        })
    }
}

/// [`HedgePolicy::http`].
impl Default for HedgePolicy {
    fn default() -> Self {
        Self::http()
    }
}

impl<K: Protocol, B, M> HedgePolicy<K, B, M> {
    fn of(settings: Settings<K, B>) -> Self {
        Self { settings: Arc::new(settings), mode: PhantomData }
    }

    /// Returns the budget, to read its balance.
    pub fn budget_ref(&self) -> &B {
        &self.settings.budget
    }

    /// Returns a warning for each setting outside of its recommended range: limits and budget. Such a setting is
    /// obeyed. A setting of the protocol that hedging does not use has a warning too.
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

    /// Returns the delay before a hedge, if it is a fixed one.
    pub(crate) fn fixed_delay(&self) -> Option<Duration> {
        match self.settings.delay {
            HedgeDelay::Fixed(delay) => Some(delay),
            HedgeDelay::Quantile(_) => None,
        }
    }

    /// Returns the present delay before a hedge; `None` while too few latencies were observed.
    pub fn current_delay(&self) -> Option<Duration> {
        match &self.settings.delay {
            HedgeDelay::Fixed(delay) => Some(*delay),
            HedgeDelay::Quantile(latencies) => latencies.quantile(),
        }
    }
}

impl<K: Protocol, B: Budget> Client for Settings<K, B> {
    fn classify_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        self.protocol.classify_trailers(trailers, options)
    }

    fn budget(&self) -> &dyn Budget {
        &self.budget
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }
}

/// Settings of every protocol.
impl<K, B, M> HedgePolicy<K, B, M>
where
    K: Protocol + Clone,
    B: Clone,
{
    /// Changes the settings of the protocol: classifiers, limits on kept bodies, and all others of [`Http`].
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::Verdict;
    /// use reattempt::hedge::HedgePolicy;
    ///
    /// let policy = HedgePolicy::http().protocol(|http| http.on_status(StatusCode::LOCKED, Verdict::Permanent));
    /// ```
    pub fn protocol(self, change: impl FnOnce(K) -> K) -> Self {
        self.set(|settings| settings.protocol = change(settings.protocol.clone()))
    }

    /// Sets the most attempts in all, the first included; 0 and 1 both mean never to hedge. Default 2. A number above
    /// the [cap](Self::attempts_cap) acts as the cap (CALL-8).
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| settings.limits.max_attempts = attempts)
    }

    /// Sets the cap on attempts. Higher numbers of the policy, of a call or of a method are lowered to it.
    /// Default 5 (CALL-8).
    ///
    /// Each attempt may run beside all others: a cap of 10 allows ten times the load.
    ///
    /// ```
    /// use reattempt::hedge::HedgePolicy;
    /// let policy = HedgePolicy::http().attempts_cap(8).max_attempts(8);
    /// ```
    pub fn attempts_cap(self, attempts: u32) -> Self {
        self.set(|settings| settings.cap = attempts)
    }

    /// Sets a fixed time from one attempt to the next, in place of the quantile. Zero sends all attempts at once:
    /// `max_attempts` times the load (HG-2).
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.delay = HedgeDelay::Fixed(delay))
    }

    /// Makes the delay the running quantile of the durations of first attempts. Default 0.95: a first attempt is hedged
    /// if it is slower than 95 of 100. Slow calls then add at most 1 − q to the load for each hedge of a call (5 % with
    /// two attempts).
    ///
    /// No call is hedged before there are enough samples: at least 100, and ten beyond the quantile (200 samples for
    /// 0.95, 1000 for 0.99). The estimate is at most 6.25 % above the true quantile of the samples, and never
    /// below it. The timer counts in whole milliseconds. All weights are halved after each 2000 samples (0.95; 10,000
    /// for 0.99). All calls of the policy share the samples: give calls of a different kind a policy of their own.
    ///
    /// A first attempt that is slower than the delay is always counted. One that fails sooner is not. Hedges that
    /// follow a failure are bounded by the budget alone.
    ///
    /// # Errors
    /// Returns an error unless `quantile` is from 0.5 to 0.9999.
    pub fn delay_quantile(self, quantile: f64) -> Result<Self, ConfigError> {
        let latencies = Arc::new(Latencies::new(quantile)?);
        Ok(self.set(|settings| settings.delay = HedgeDelay::Quantile(latencies)))
    }

    /// Sets the time from the start of a call after which no further attempt is sent; `None` for no limit. Default 30
    /// s.
    ///
    /// The limit interrupts no attempt. It ends the wait for a service that does not become ready for a hedge. One kind
    /// of call waits on, because it has no other outcome. Its error type is the inner service's own, and its only
    /// response was refused and is gone.
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| settings.limits.max_elapsed = elapsed)
    }

    /// Sets the longest delay that a server may ask for by `Retry-After`. If it asks for a longer one, no further
    /// attempt is sent. Default 60 s. An exact delay, which is no minimum, has no such limit (PB-4).
    pub fn max_server_delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.limits.max_server_delay = delay)
    }

    /// Sets the budget, which must grant every hedge. Default: [`RetryBudget::cautious`] for each destination.
    ///
    /// If it refuses a hedge, the attempts in flight go on and the call sends no other (HG-8). The hedge of a slow call
    /// is asked for with a failure of the kind [`Timeout`](crate::schedule::FailureKind::Timeout). If a retry layer has
    /// the same budget, give [`SpendOnly`](crate::budget::SpendOnly) of it here.
    pub fn budget<T: Budget>(self, budget: T) -> HedgePolicy<K, T, M> {
        let Settings { protocol, limits, cap, delay, idempotent, observer, .. } = self.into_settings();
        HedgePolicy::of(Settings { protocol, budget, limits, cap, delay, idempotent, observer })
    }

    /// Makes the call's error tower's `BoxError`, and lets a [`Deadline`](crate::Deadline) end the whole call with a
    /// [`TimedOut`](crate::TimedOut) (HG-11).
    ///
    /// A call whose deadline has passed already is not sent. Without this setting a deadline prevents further attempts,
    /// and ends the call only if the protocol has a response for that. Inner services whose error is a `BoxError` need
    /// it.
    pub fn boxed_errors(self) -> HedgePolicy<K, B, BoxedError> {
        HedgePolicy::of(self.into_settings())
    }

    /// Adds an observer, which is notified of every event of every call that may be hedged, after the observers added
    /// before it. While the quantile is not known yet, no call is hedged and there are no events.
    ///
    /// Here [`WillRetry`](Event::WillRetry) means that a hedge has been sent. Its `after` is the time from the attempt
    /// before to this one.
    pub fn observe_with<O: Observer + 'static>(self, observer: O) -> Self {
        self.set(|settings| observe::add(&mut settings.observer, observer))
    }

    /// Adds a closure as an observer; [`observe_with`](Self::observe_with) adds a type of its own.
    pub fn observe<F>(self, observer: F) -> Self
    where
        F: Fn(&str, &Event<'_>) + Send + Sync + 'static,
    {
        self.observe_with(observer)
    }

    pub(crate) fn set(self, change: impl FnOnce(&mut Settings<K, B>)) -> Self {
        let mut settings = self.into_settings();
        change(&mut settings);
        Self::of(settings)
    }

    fn into_settings(self) -> Settings<K, B> {
        Arc::try_unwrap(self.settings).unwrap_or_else(|shared| (*shared).clone())
    }
}

/// Settings of HTTP. Those of [`Http`] that are absent here have no effect on hedging.
impl<B: Clone, M> HedgePolicy<Http, B, M> {
    protocol_setters!(Http: reading, http, sending);

    /// Sets whether PUT and DELETE are hedged as well. Default `false`: requests that are safe one after the other may
    /// still conflict side by side.
    ///
    /// An `Idempotency-Key` does not make a request hedgeable: servers refuse a second request with a key while the
    /// first is under way.
    pub fn idempotent_methods(self, hedged: bool) -> Self {
        self.set(|settings| settings.idempotent = hedged)
    }
}

impl<K: Clone, B: Clone> Clone for Settings<K, B> {
    fn clone(&self) -> Self {
        Self {
            protocol: self.protocol.clone(),
            budget: self.budget.clone(),
            limits: self.limits,
            cap: self.cap,
            delay: self.delay.clone(),
            idempotent: self.idempotent,
            observer: self.observer.clone(),
        }
    }
}

impl<K: Protocol, B, M> Clone for HedgePolicy<K, B, M> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), mode: PhantomData }
    }
}

impl<K: Protocol + fmt::Debug, B: fmt::Debug, M> fmt::Debug for HedgePolicy<K, B, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgePolicy")
            .field("protocol", &self.settings.protocol)
            .field("budget", &self.settings.budget)
            .field("limits", &self.settings.limits)
            .field("delay", &self.settings.delay)
            .finish_non_exhaustive()
    }
}
