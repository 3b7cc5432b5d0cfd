//! The settings of hedging: protocol, attempts, delay, limits, budget, observers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use reattempt_control::{Latencies, RetryBudget};
use reattempt_core::{Budget, ConfigError, Limits, Verdict};

use crate::call::finish::Client;
use crate::call::observe::{Event, Observer};
use crate::call::options::CallOptions;
use crate::error_mode::BoxedError;
use crate::protocol::{Http, Protocol};

/// The most attempts that a policy allows unless its cap is set (rule CALL-8).
const DEFAULT_CAP: u32 = 5;

/// A policy that decides which calls are hedged, when, and how often.
///
/// **Hedging multiplies load and carries requests out more than once**: see the hazards of
/// [`HedgeLayer`](crate::hedge::HedgeLayer).
///
/// The first attempt goes at once; while it has not answered, another goes each `delay`, up to
/// `max_attempts` in all. The first response that is not worth another attempt wins: a 200 does, and so
/// does a 404. A 503 does not win. A failure that another attempt may mend brings the next one forward to
/// that very moment. Only a response ends the call while others are in flight: an error ends its own
/// attempt (a failure of the request's own body ends the call). When all have failed the caller gets what
/// came last. The losers are dropped before the winner is handed out.
///
/// A server that asks for a wait (HTTP's `Retry-After`, say) puts the next attempt off for
/// that long; one that asks for no retry stops all further ones, and those under way go on.
///
/// A refused response is thrown away before anything is waited for, because the next attempt may need the
/// place that it holds. The budget is asked before that, so a hedge that it refuses leaves the caller
/// that response.
///
/// Waiting needs a tokio runtime with its time driver on. Where there is no runtime calls work and are
/// not hedged.
///
/// A clone shares the budget and the latencies observed with its original; policies that are built
/// separately share nothing.
///
/// | setting | default | why |
/// |---|---|---|
/// | delay | the 95th percentile of observed latencies | at most one call in twenty is slow enough to be hedged |
/// | `max_attempts` | 2 | so that this is all the load that slowness adds |
/// | `max_elapsed` | 30 s | past that nobody waits for the answer |
/// | `max_server_delay` | 60 s | a server that asks for more is better left alone |
/// | budget | [`RetryBudget::cautious`] for each destination | errors bring hedges forward, and the quantile does not bound those |
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
    pub(super) settings: Arc<Settings<K, B>>,
    mode: PhantomData<fn() -> M>,
}

/// The settings that all clones of a policy share.
pub(crate) struct Settings<K, B> {
    pub(crate) protocol: K,
    pub(crate) budget: B,
    pub(super) limits: Limits,
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
    /// Hedging of HTTP requests with a safe method.
    pub fn http() -> Self {
        Self::with(Http::new())
    }
}

impl<K: Protocol> HedgePolicy<K> {
    /// Hedging over a protocol with settings of its own. Several policies and layers may share them.
    pub fn with(protocol: K) -> Self {
        Self::of(Settings {
            protocol,
            budget: K::default_budget(),
            limits: Limits { max_attempts: 2, ..Limits::default() },
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

    /// The budget, to read its balance.
    pub fn budget_ref(&self) -> &B {
        &self.settings.budget
    }

    /// The delay before the next hedge, as it is now; `None` while too little is known of latencies.
    pub fn current_delay(&self) -> Option<Duration> {
        match &self.settings.delay {
            HedgeDelay::Fixed(delay) => Some(*delay),
            HedgeDelay::Quantile(latencies) => latencies.quantile(),
        }
    }
}

impl<K: Protocol, B: Budget> Client for Settings<K, B> {
    fn budget(&self) -> &dyn Budget {
        &self.budget
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    fn judge_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        self.protocol.judge_trailers(trailers, options)
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

    /// The most attempts in all, the first included; 0 and 1 both mean never to hedge. Default 2. What is
    /// above the [cap](Self::attempts_cap), 5 by default, acts as the cap (rule CALL-8).
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| settings.limits.max_attempts = attempts)
    }

    /// Sets the cap on attempts, to which the policy's own number, a call's and a service config's are
    /// lowered. Default 5 (rule CALL-8).
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

    /// The time from one attempt to the next, always the same. Zero sends all at once (rule HG-2):
    /// `max_attempts` times the load.
    pub fn delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.delay = HedgeDelay::Fixed(delay))
    }

    /// Makes the delay the running quantile of how long first attempts take: 0.95 hedges those that
    /// are slower than 95 of 100. Slowness then adds at most 1 − q to the load for each hedge a call
    /// may have (with two attempts: 5 %).
    ///
    /// Nothing is hedged before there are samples enough: 100, or as many as it takes for ten to lie
    /// beyond the quantile (0.95: 200; 0.99: 1000). The estimate is at most 6.25 % above the true
    /// quantile of the samples, never below it, and the timer that waits for it counts in whole
    /// milliseconds. Older samples count for less: half after ten times as many as it took. It is one
    /// for all calls of the policy: give calls of a different kind a policy of their own.
    ///
    /// Every first attempt that outlasts the delay is counted, whatever becomes of it; one that fails
    /// sooner is not. Hedges that answer a failure rather than slowness are not bounded by the
    /// quantile, only by the budget.
    ///
    /// # Errors
    /// Unless `quantile` is from 0.5 to 0.9999.
    pub fn delay_quantile(self, quantile: f64) -> Result<Self, ConfigError> {
        let latencies = Arc::new(Latencies::new(quantile)?);
        Ok(self.set(|settings| settings.delay = HedgeDelay::Quantile(latencies)))
    }

    /// The time from the start of a call after which no further attempt is sent; `None` for no limit.
    /// Default 30 s. It interrupts nothing, but it also ends the wait for a service that does not
    /// become ready for a hedge. With the inner service's own errors one such wait has no end: that of a
    /// call whose only response was refused and is gone, for it has nothing else to end with.
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let elapsed = elapsed.into();
        self.set(|settings| settings.limits.max_elapsed = elapsed)
    }

    /// The longest delay a server may ask for by `Retry-After`; asked for more, no further attempt is
    /// made. Default 60 s. An exact delay, which is no minimum, has no such limit (rule PB-4).
    pub fn max_server_delay(self, delay: Duration) -> Self {
        self.set(|settings| settings.limits.max_server_delay = delay)
    }

    /// The budget that stands in front of every hedge. A hedge that it refuses is not sent; those in
    /// flight go on, and the call has no further one (rule HG-8).
    ///
    /// A call that is hedged for taking long asks it as for a failure of the kind
    /// [`Timeout`](crate::schedule::FailureKind::Timeout). One that a retry layer has as well goes in here
    /// as [`SpendOnly`](crate::budget::SpendOnly).
    pub fn budget<T: Budget>(self, budget: T) -> HedgePolicy<K, T, M> {
        let Settings { protocol, limits, cap, delay, idempotent, observer, .. } =
            self.into_settings();
        HedgePolicy::of(Settings { protocol, budget, limits, cap, delay, idempotent, observer })
    }

    /// Makes the call's error tower's `BoxError`, and lets a [`Deadline`](crate::Deadline) end the
    /// whole call with a [`TimedOut`](crate::TimedOut) (rule HG-11). A call whose deadline has passed
    /// already is not sent. Without it a deadline only keeps further attempts from being sent, because the error
    /// type is the inner service's own; a protocol with an answer for it ends the call with that. Needed for inner services whose error is a `BoxError`
    /// already.
    pub fn boxed_errors(self) -> HedgePolicy<K, B, BoxedError> {
        HedgePolicy::of(self.into_settings())
    }

    /// Is told of every event of every call that may be hedged, after the observers added before it;
    /// of none while the quantile is not known yet, for then calls only pass through.
    ///
    /// Here [`WillRetry`](Event::WillRetry) tells of a hedge that is being sent, with the time since
    /// the attempt before it was.
    pub fn observe_with<O: Observer + 'static>(self, observer: O) -> Self {
        self.set(|settings| {
            settings.observer = Some(match settings.observer.take() {
                None => Arc::new(observer),
                Some(first) => Arc::new(move |destination: &str, event: &Event<'_>| {
                    first.on_event(destination, event);
                    observer.on_event(destination, event);
                }),
            });
        })
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

/// Settings of HTTP.
impl<B: Clone, M> HedgePolicy<Http, B, M> {
    /// Sets whether PUT and DELETE are hedged as well. Off by default: what is right to repeat one after
    /// the other may still clash when it runs side by side.
    ///
    /// An `Idempotency-Key` is not enough: servers refuse a second request with a key while the first
    /// is under way.
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
