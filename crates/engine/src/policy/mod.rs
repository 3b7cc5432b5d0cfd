//! Retry settings: protocol, schedule, limits, budget, hooks and observers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Budget, Combined, Limits, Schedule, Warning};
use reattempt_schedule_exponential::Exponential;

use crate::call::observe;
use crate::call::observe::{Event, Observer};
#[cfg(not(feature = "http"))]
use crate::call::protocol::Operations as Http;
use crate::call::protocol::Protocol;
use crate::call::random::Seed;
#[cfg(feature = "http")]
use crate::protocol::Http;

mod limits;
mod profile;
#[cfg(feature = "http")]
mod requests;
#[cfg(feature = "http")]
mod stock;

pub use profile::Profile;
#[cfg(feature = "http")]
pub use stock::{StockDelay, StockPolicy};

use crate::call::settings::Settings;

/// A policy that decides which calls are retried, when, and how often.
///
/// **No attempt is timed out by default**: if a server hangs, the call hangs. Set
/// [`attempt_timeout`](Self::attempt_timeout) unless the inner service has its own timeout.
///
/// **Delays require a tokio runtime with its time driver** (`enable_time` or `enable_all`). Without the driver, tokio
/// panics, which this crate cannot prevent. Without any runtime, calls are sent, but not retried after a delay
/// ([`StopReason::NoTimer`](crate::StopReason::NoTimer)).
///
/// Clones share the budget and the memory limit for saved bodies. Policies that are created separately share nothing.
///
/// The protocol decides what is retried, as documented at [`Http`]. Use [`protocol`](Self::protocol) to change it.
///
/// | setting | default | reason |
/// |---|---|---|
/// | schedule | full jitter from 100 ms, doubling up to 5 s | spreads clients over the whole interval |
/// | `max_attempts` | 3 | a fourth attempt rarely succeeds after three failures, but costs the server as much |
/// | `max_elapsed` | 30 s | most callers have given up by then |
/// | `max_server_delay` | 60 s | a server that asks for a longer delay should not get a retry |
/// | budget | [`RetryBudget::cautious`] for each destination | successful retries are free, and in an outage at most three are sent; the calls of a lost connection count as one failure |
/// | attempt timeout | none | it changes the call's error type |
/// | `drain_time` | 50 ms | reading a short refused response to its end costs less than a new connection |
///
/// ```
/// use std::time::Duration;
/// use reattempt::{RetryBudget, RetryPolicy};
/// use reattempt::schedule::Exponential;
///
/// let policy = RetryPolicy::http()
///     .backoff(Exponential::full_jitter(Duration::from_millis(100)).max_delay(Duration::from_secs(5)))
///     .max_attempts(4)
///     .max_elapsed(Duration::from_secs(20))
///     .budget(RetryBudget::ratio(0.1));
/// ```
pub struct RetryPolicy<P = Http, Backoff = Exponential, B = RetryBudget, Mode = <P as Protocol>::Mode>
where
    P: Protocol,
{
    pub(crate) settings: Arc<Settings<P, Backoff, B>>,
    mode: PhantomData<fn() -> Mode>,
}

impl<P: Protocol> RetryPolicy<P> {
    /// Creates a policy with a custom protocol value, which several policies and layers may share.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::{Http, RetryPolicy, Verdict};
    /// use reattempt::hedge::HedgePolicy;
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// let locked = Verdict::NotProcessed(Failure::new(FailureKind::Server));
    /// let http = Http::new().on_status(StatusCode::LOCKED, locked);
    /// let retries = RetryPolicy::with(http.clone());
    /// let hedges = HedgePolicy::with(http);
    /// ```
    pub fn with(protocol: P) -> Self {
        Self::with_protocol(protocol, P::default_backoff(), P::default_budget())
    }
}

impl<P: Protocol, Backoff: Schedule, B, Mode> RetryPolicy<P, Backoff, B, Mode> {
    #[doc(hidden)]
    pub fn with_protocol(protocol: P, schedule: Backoff, budget: B) -> Self {
        Self::of(Settings::new(protocol, schedule, budget))
    }

    fn of(mut settings: Settings<P, Backoff, B>) -> Self {
        if settings.never {
            settings.limits.max_attempts = 1;
        }
        settings.plain = settings.hook.is_none()
            && settings.seed.is_none()
            && !settings.nested
            && !settings.clone_per_call
            && settings.protocol.is_plain()
            // Unprocessed attempts are replaced even if only one attempt is allowed.
            && !(settings.never && settings.protocol.replaces());
        Self { settings: Arc::new(settings), mode: PhantomData }
    }

    #[doc(hidden)]
    pub fn protocol_ref(&self) -> &P {
        &self.settings.protocol
    }

    #[doc(hidden)]
    pub fn get_attempt_timeout(&self) -> Option<Duration> {
        self.settings.attempt_timeout
    }

    /// Returns the budget, for example to read its balance.
    pub fn budget_ref(&self) -> &B {
        &self.settings.budget
    }

    /// Returns the limits on attempts and time.
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Returns a warning for each limit, delay or budget setting outside its recommended range. Such a setting still
    /// applies.
    ///
    /// There is also a warning for settings that contradict each other: more attempts than the budget grants while no
    /// call succeeds, an attempt timeout that is not below `max_elapsed`, a [`backoff`](Self::backoff) that a later
    /// [`profile`](Self::profile) replaced, and a profile's classifier that has no effect on the protocol.
    ///
    /// `lab check` prints the same warnings for a file of policies.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    ///
    /// assert!(RetryPolicy::http().validate().is_empty());
    /// let warnings = RetryPolicy::http().max_attempts(50).validate();
    /// assert_eq!(warnings[0].to_string(), "`max_attempts` is 50 (recommended: 2 to 10, usually 3 to 5)");
    /// ```
    pub fn validate(&self) -> Vec<Warning>
    where
        B: Budget,
    {
        let Settings { limits, strategy: schedule, budget, chosen, attempt_timeout, .. } = &*self.settings;
        let replaced = chosen
            .backoff_replaced
            .then(|| Warning::new("backoff", "replaced by a later `profile`", "set after `profile`"));
        #[cfg(feature = "http")]
        let unused = chosen
            .classifier_unused
            .then(|| Warning::new("classifier", "for HTTP, and has no effect here", "`None` in the profile"));
        #[cfg(not(feature = "http"))]
        let unused = None;
        let granted_retries = budget.most_retries(limits.max_elapsed.unwrap_or(Duration::MAX));
        let (limits, attempt_timeout) = (*limits, *attempt_timeout);
        let combined = Combined { limits: Some(limits), granted_retries, attempt_timeout, ..Combined::default() };
        let of_parts = [limits.validate(), schedule.validate(&limits), budget.validate(), combined.validate()];
        of_parts.into_iter().flatten().chain(replaced).chain(unused).collect()
    }
}

/// Settings for every protocol.
impl<P, Backoff, B, Mode> RetryPolicy<P, Backoff, B, Mode>
where
    P: Protocol + Clone,
    Backoff: Schedule + Clone,
    B: Clone,
{
    /// Changes the protocol's settings, such as classifiers and replay limits. [`Http`] lists all of them.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::{RetryPolicy, Verdict};
    ///
    /// let policy = RetryPolicy::http().protocol(|http| http.on_status(StatusCode::LOCKED, Verdict::Permanent));
    /// ```
    pub fn protocol(self, change: impl FnOnce(P) -> P) -> Self {
        self.set(|settings| settings.protocol = change(settings.protocol.clone()))
    }

    /// Sets the delays between attempts. Default: full jitter from 100 ms, doubling up to 5 s.
    ///
    /// The [`schedule`](crate::schedule) module lists the schedules. The schedule's type is part of the policy's type.
    /// [`SharedSchedule`](crate::schedule::SharedSchedule) erases that type.
    #[doc(alias("delay", "schedule", "retry_delay"))]
    pub fn backoff<T: Schedule>(self, schedule: T) -> RetryPolicy<P, T, B, Mode> {
        let mut settings = self.into_settings().map(|_, budget| (schedule, budget));
        (settings.chosen.backoff, settings.chosen.backoff_replaced) = (true, false);
        RetryPolicy::of(settings)
    }

    /// Sets the budget, which must grant every retry. Default: [`RetryBudget::cautious`] for each destination, unless
    /// the protocol has another default.
    ///
    /// [`RetryBudget::unlimited`] grants every retry. Clones of a budget share its state between policies, layers and
    /// clients.
    #[doc(alias("retry_budget", "token_bucket"))]
    pub fn budget<T: Budget>(self, budget: T) -> RetryPolicy<P, Backoff, T, Mode> {
        let mut settings = self.into_settings();
        settings.chosen.budget = true;
        RetryPolicy::of(settings.map(|schedule, _| (schedule, budget)))
    }

    /// Adds an observer, which is notified of every event in every call, after the existing observers.
    pub fn observe_with<O: Observer + 'static>(self, observer: O) -> Self {
        self.set(|settings| observe::add_observer(&mut settings.observer, observer))
    }

    /// Adds a closure as an observer; [`observe_with`](Self::observe_with) adds any other observer.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// let policy = RetryPolicy::http().observe(|destination, event| eprintln!("{destination}: {event}"));
    /// ```
    #[doc(alias("on_retry", "notify", "on_event"))]
    pub fn observe<F: Fn(&str, &Event<'_>) + Send + Sync + 'static>(self, observer: F) -> Self {
        self.observe_with(observer)
    }

    /// Makes all delays reproducible, for tests and simulations. Each call gets its own stream of random numbers,
    /// assigned in call order. Default: a random seed.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|settings| settings.seed = Some(Seed::new(seed)))
    }

    /// Sets how long a refused response may be read, so that its connection can be reused, before the connection is
    /// closed. This time is part of the retry's delay. Default: 50 ms.
    pub fn drain_time(self, time: Duration) -> Self {
        self.set(|settings| settings.drain_time = time)
    }

    /// Coordinates nested retry layers, so that attempts do not multiply. Default: `false`.
    ///
    /// An outer layer with this setting adds a marker to each request's extensions. An inner layer with this setting
    /// then leaves all retries to the outer one. An inner layer without this setting still retries. If it gives up, it
    /// records this in the marker, and the outer layer stops too.
    ///
    /// This works with `http::Request`, and between the middlewares of `reattempt-reqwest-middleware`. Between two
    /// layers around a `reqwest::Client` it has no effect, because reqwest's requests have no public extensions for the
    /// marker.
    pub fn nested(self, nested: bool) -> Self {
        self.set(|settings| settings.nested = nested)
    }

    /// Sets whether the service is cloned for each call when the first attempt is sent. Default: `false`.
    ///
    /// With `false`, a call that succeeds on the first attempt clones nothing. The instance that is ready sends the
    /// first attempt. The first retry uses a clone of a spare instance that all clones of the client share. Each later
    /// retry uses a clone of the previous retry's instance. A round-robin service with a counter in each clone then
    /// picks endpoints 0, 0 and 1 for three attempts.
    ///
    /// With `true`, retries use clones of the instance that sent the first attempt, so the same service picks endpoints
    /// 0, 1 and 2. Use `true` for services whose clones have separate state. This is not needed if clones share their
    /// state, as with tower's `Buffer` around a `Balance`, hyper-util's client or reqwest.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// let policy = RetryPolicy::http().clone_per_call(true);
    /// ```
    pub fn clone_per_call(self, clone: bool) -> Self {
        self.set(|settings| settings.clone_per_call = clone)
    }

    pub(crate) fn set(self, change: impl FnOnce(&mut Settings<P, Backoff, B>)) -> Self {
        let mut settings = self.into_settings();
        change(&mut settings);
        Self::of(settings)
    }

    fn into_settings(self) -> Settings<P, Backoff, B> {
        Arc::try_unwrap(self.settings).unwrap_or_else(|shared| (*shared).clone())
    }
}

impl<P: Protocol, Backoff, B, Mode> Clone for RetryPolicy<P, Backoff, B, Mode> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), mode: PhantomData }
    }
}

impl<P, Backoff, B, Mode> fmt::Debug for RetryPolicy<P, Backoff, B, Mode>
where
    P: Protocol + fmt::Debug,
    Backoff: fmt::Debug,
    B: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("protocol", &self.settings.protocol)
            .field("schedule", &self.settings.strategy)
            .field("budget", &self.settings.budget)
            .field("limits", &self.settings.limits)
            .field("attempt_timeout", &self.settings.attempt_timeout)
            .finish_non_exhaustive()
    }
}

/// Shows the schedule, the limits and the budget. Its protocol is not shown.
impl<P: Protocol, Backoff: fmt::Debug, B: Inspect, Mode> Inspect for RetryPolicy<P, Backoff, B, Mode> {
    fn inspect(&self, now: Duration) -> Part {
        self.settings.inspect("retry_policy", now).field("schedule", format!("{:?}", self.settings.strategy))
    }
}
