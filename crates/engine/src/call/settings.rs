//! The settings of a policy, which its clones and calls share.

use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http")]
use http::HeaderMap;
#[cfg(feature = "http")]
use reattempt_core::Verdict;
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_core::{Budget, Limits, Schedule};

use crate::call::causes::Causes;
#[cfg(feature = "http")]
use crate::call::finish::Client;
use crate::call::hook::BeforeAttempt;
use crate::call::observe::Observer;
#[cfg(feature = "http")]
use crate::call::options::CallOptions;
use crate::call::protocol::Protocol;
use crate::call::random::Seed;

/// The hook of a policy for protocol `P`.
type Hook<P> = Arc<dyn BeforeAttempt<<P as Protocol>::Head>>;

/// The settings of a policy. The strategy is the retry schedule, or the settings that only hedges have.
#[derive(Clone)]
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct Settings<P: Protocol, Strategy, B> {
    /// The protocol with its settings.
    pub protocol: P,
    /// A schedule, or what only hedges have.
    pub strategy: Strategy,
    /// The retry budget.
    pub budget: B,
    /// The limits on attempts and time.
    pub limits: Limits,
    /// `true` if the caller has turned retries off.
    pub(crate) never: bool,
    pub(crate) chosen: Chosen,
    /// The time limit of an attempt.
    pub attempt_timeout: Option<Duration>,
    pub(crate) drain_time: Duration,
    pub(crate) hook: Option<Hook<P>>,
    /// The observers, which are notified in the order of their addition.
    pub observer: Option<Arc<dyn Observer>>,
    pub(crate) seed: Option<Seed>,
    pub(crate) nested: bool,
    pub(crate) clone_per_call: bool,
    /// The causes that several calls failed of, for reports.
    pub(crate) causes: Causes,
    /// `true` if a call needs no preparation before its first attempt.
    pub(crate) plain: bool,
}

impl<P: Protocol, Strategy, B> Settings<P, Strategy, B> {
    /// Returns the time limit of a call's attempts.
    #[cfg(feature = "http")]
    pub(crate) fn attempt_limit(&self, options: Option<&CallOptions>) -> Option<Duration> {
        options.and_then(CallOptions::get_attempt_timeout).or(self.attempt_timeout)
    }

    /// Returns a policy's part of a snapshot.
    pub(crate) fn inspect(&self, kind: &'static str, now: Duration) -> Part
    where
        B: Inspect,
    {
        let part = self.limits.inspect(Part::new(kind, ""));
        part.field_if("attempt_timeout", self.attempt_timeout).parts([self.budget.inspect(now)])
    }
}

/// The settings that the caller has set explicitly. A profile does not replace them, except for the backoff.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Chosen {
    pub(crate) max_attempts: bool,
    pub(crate) max_elapsed: bool,
    pub(crate) max_server_delay: bool,
    pub(crate) budget: bool,
    pub(crate) backoff: bool,
    /// `true` if a profile replaced the caller's backoff.
    pub(crate) backoff_replaced: bool,
    /// `true` if a profile has a classifier that the protocol does not use.
    #[cfg(feature = "http")]
    pub(crate) classifier_unused: bool,
}

impl<P: Protocol, Strategy: Schedule, B: Budget> Settings<P, Strategy, B> {
    /// Returns `true` if the outcome of a call that is not retried need not be recorded.
    #[inline]
    pub(crate) fn learns_nothing(&self) -> bool {
        self.observer.is_none() && self.strategy.is_stateless() && self.budget.is_full()
    }
}

impl<P: Protocol, Strategy, B> Settings<P, Strategy, B> {
    /// Creates default settings with this protocol, schedule and budget.
    pub fn new(protocol: P, strategy: Strategy, budget: B) -> Self {
        Self {
            protocol,
            strategy,
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
            causes: Causes::default(),
            plain: true,
        }
    }

    /// Returns these settings with a different schedule and budget.
    pub fn map<U, C>(self, change: impl FnOnce(Strategy, B) -> (U, C)) -> Settings<P, U, C> {
        let (strategy, budget) = change(self.strategy, self.budget);
        Settings {
            protocol: self.protocol,
            strategy,
            budget,
            limits: self.limits,
            never: self.never,
            chosen: self.chosen,
            attempt_timeout: self.attempt_timeout,
            drain_time: self.drain_time,
            hook: self.hook,
            observer: self.observer,
            seed: self.seed,
            nested: self.nested,
            clone_per_call: self.clone_per_call,
            causes: self.causes,
            plain: self.plain,
        }
    }
}

#[cfg(feature = "http")]
impl<P: Protocol, Strategy: Send + Sync, B: Budget> Client for Settings<P, Strategy, B> {
    fn budget(&self) -> &dyn Budget {
        &self.budget
    }

    fn observer(&self) -> Option<&dyn Observer> {
        self.observer.as_deref()
    }

    fn classify_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Verdict {
        self.protocol.classify_trailers(trailers, options)
    }
}
