//! The settings of retries: protocol, schedule, limits, budget, hooks and observers.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Limits, Schedule};
use reattempt_schedule_exponential::Exponential;

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
pub use stock::StockDelay;

use crate::call::settings::{Chosen, Settings};
#[cfg(feature = "http")]
use stock::StockCall;

/// A policy that decides which calls are retried, when, and how often.
///
/// **No attempt is timed out by default**: a server that hangs hangs the call. Set
/// [`attempt_timeout`](Self::attempt_timeout) unless the inner service has a timeout of its own.
///
/// **A wait needs a tokio runtime with its time driver on** (`enable_time` or `enable_all`). tokio panics
/// where a runtime has none, and offers no way to find out. Without any runtime, calls work and are not
/// retried after a delay ([`StopReason::NoTimer`](crate::StopReason::NoTimer)).
///
/// A clone shares the budget and the bound on kept bodies with its original; policies that are built
/// separately share nothing.
///
/// | setting | default | why |
/// |---|---|---|
/// | schedule | full jitter from 100 ms, doubling up to 5 s | spreads clients over the whole interval |
/// | `max_attempts` | 3 | a third retry rarely succeeds where two have failed, and costs the server as much |
/// | `max_elapsed` | 30 s | past that nobody waits for the answer |
/// | `max_server_delay` | 60 s | a server that asks for more is better left alone |
/// | budget | [`RetryBudget::cautious`] for each destination | retries cost nothing while they help, and an outage is sent at most three |
/// | attempt timeout | none | it changes the error type, so it is asked for |
///
/// ```
/// use std::time::Duration;
/// use reattempt::{RetryBudget, RetryPolicy};
/// use reattempt::schedule::Exponential;
///
/// # fn main() -> Result<(), reattempt::error::ConfigError> {
/// let policy = RetryPolicy::http()
///     .backoff(Exponential::full_jitter(Duration::from_millis(100)).max_delay(Duration::from_secs(5)))
///     .max_attempts(4)
///     .max_elapsed(Duration::from_secs(20))
///     .budget(RetryBudget::ratio(0.1)?);
/// # Ok(())
/// # }
/// ```
pub struct RetryPolicy<K = Http, D = Exponential, B = RetryBudget, M = <K as Protocol>::Mode>
where
    K: Protocol,
    D: Schedule,
{
    pub(crate) settings: Arc<Settings<K, D, B>>,
    #[cfg(feature = "http")]
    pub(crate) stock: StockCall<D::Delays>,
    mode: PhantomData<fn() -> M>,
}

impl<K: Protocol> RetryPolicy<K> {
    /// Retries over a protocol with settings of its own. Several policies and layers may share them.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::{Http, RetryPolicy, Verdict};
    /// use reattempt::hedge::HedgePolicy;
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// let locked = Verdict::Unprocessed(Failure::new(FailureKind::Server));
    /// let http = Http::new().on_status(StatusCode::LOCKED, locked);
    /// let retries = RetryPolicy::with(http.clone());
    /// let hedges = HedgePolicy::with(http);
    /// ```
    pub fn with(protocol: K) -> Self {
        Self::with_protocol(protocol, K::default_backoff(), K::default_budget())
    }
}

impl<K: Protocol, D: Schedule, B, M> RetryPolicy<K, D, B, M> {
    pub(crate) fn with_protocol(protocol: K, schedule: D, budget: B) -> Self {
        Self::of(Settings {
            protocol,
            schedule,
            budget,
            limits: Limits::default(),
            never: false,
            chosen: Chosen::default(),
            attempt_timeout: None,
            drain_time: Duration::from_millis(50),
            hook: None,
            observer: None,
            seed: None,
            nested: false,
            clone_per_call: false,
            counts_calls: false,
            plain: true,
        })
    }

    fn of(mut settings: Settings<K, D, B>) -> Self {
        if settings.never {
            settings.limits.max_attempts = 1;
        }
        settings.plain = settings.hook.is_none()
            && settings.seed.is_none()
            && !settings.nested
            && !settings.clone_per_call
            && !settings.counts_calls
            && settings.protocol.is_plain()
            // A protocol that replaces attempts does so even where one attempt is all.
            && !(settings.never && settings.protocol.replaces());
        Self {
            settings: Arc::new(settings),
            #[cfg(feature = "http")]
            stock: StockCall::default(),
            mode: PhantomData,
        }
    }

    /// The budget, to read its balance.
    pub fn budget_ref(&self) -> &B {
        &self.settings.budget
    }

    /// The limits.
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }
}

/// Settings of every protocol.
impl<K, D, B, M> RetryPolicy<K, D, B, M>
where
    K: Protocol + Clone,
    D: Schedule + Clone,
    B: Clone,
{
    /// Changes the settings of the protocol: classifiers, limits on kept bodies, and all others of [`Http`].
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::{RetryPolicy, Verdict};
    ///
    /// let policy = RetryPolicy::http().protocol(|http| http.on_status(StatusCode::LOCKED, Verdict::Permanent));
    /// ```
    pub fn protocol(self, change: impl FnOnce(K) -> K) -> Self {
        self.set(|settings| settings.protocol = change(settings.protocol.clone()))
    }

    /// The delays between attempts.
    #[doc(alias("delay", "schedule"))]
    pub fn backoff<T: Schedule>(self, schedule: T) -> RetryPolicy<K, T, B, M> {
        RetryPolicy::of(self.into_settings().map(|_, budget| (schedule, budget)))
    }

    /// The budget that stands in front of every retry.
    pub fn budget<T: Budget>(self, budget: T) -> RetryPolicy<K, D, T, M> {
        let mut settings = self.into_settings();
        settings.counts_calls = budget.counts_calls();
        settings.chosen.budget = true;
        RetryPolicy::of(settings.map(|schedule, _| (schedule, budget)))
    }

    /// Is told of every event of every call, after the observers added before it.
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
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// let policy = RetryPolicy::http().observe(|destination, event| eprintln!("{destination}: {event}"));
    /// ```
    pub fn observe<F>(self, observer: F) -> Self
    where
        F: Fn(&str, &Event<'_>) + Send + Sync + 'static,
    {
        self.observe_with(observer)
    }

    /// Makes every delay reproducible: the calls, in the order in which they are made, draw from
    /// streams of their own. For tests and simulations.
    pub fn seed(self, seed: u64) -> Self {
        self.set(|settings| settings.seed = Some(Seed::new(seed)))
    }

    /// Sets how long a refused response may be drained before its connection is closed instead; default
    /// 50 ms. The time counts as part of the delay.
    pub fn drain_time(self, time: Duration) -> Self {
        self.set(|settings| settings.drain_time = time)
    }

    /// Works together with other retry layers on the same call, so that attempts do not multiply:
    /// a layer that finds itself below one with this setting leaves all retries to it if it has the
    /// setting too; if it has not, it tells when it gave up, and the outer one then stops as well.
    ///
    /// Works through the request's extensions, so for `http::Request` only.
    pub fn nested(self, nested: bool) -> Self {
        self.set(|settings| settings.nested = nested)
    }

    /// Clones the service for each call, as its first attempt is sent. Off by default.
    ///
    /// Off, a call that succeeds at once clones nothing. The first attempt is sent by the service that
    /// was readied, and all retries by a spare instance that the clones of the client share: a round
    /// robin that counts for each clone picks endpoints 0, 0 and 1. The next call's retries go on from
    /// there.
    ///
    /// On, the retries of a call go on where its own first attempt was: the same round robin picks 0, 1
    /// and 2. Set it for services that count, or choose, for each clone. Services whose clones share
    /// their state do not need it: tower's `Buffer` with a `Balance` behind it, hyper-util's client,
    /// reqwest, tonic's `Channel`.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// let policy = RetryPolicy::http().clone_per_call(true);
    /// ```
    pub fn clone_per_call(self, clone: bool) -> Self {
        self.set(|settings| settings.clone_per_call = clone)
    }

    pub(crate) fn set(self, change: impl FnOnce(&mut Settings<K, D, B>)) -> Self {
        let mut settings = self.into_settings();
        change(&mut settings);
        Self::of(settings)
    }

    fn into_settings(self) -> Settings<K, D, B> {
        Arc::try_unwrap(self.settings).unwrap_or_else(|shared| (*shared).clone())
    }
}

impl<K: Protocol, D: Schedule, B, M> Clone for RetryPolicy<K, D, B, M> {
    fn clone(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            #[cfg(feature = "http")]
            stock: self.stock.clone(),
            mode: PhantomData,
        }
    }
}

impl<K, D, B, M> fmt::Debug for RetryPolicy<K, D, B, M>
where
    K: Protocol + fmt::Debug,
    D: Schedule + fmt::Debug,
    B: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryPolicy")
            .field("protocol", &self.settings.protocol)
            .field("schedule", &self.settings.schedule)
            .field("budget", &self.settings.budget)
            .field("limits", &self.settings.limits)
            .field("attempt_timeout", &self.settings.attempt_timeout)
            .finish_non_exhaustive()
    }
}
