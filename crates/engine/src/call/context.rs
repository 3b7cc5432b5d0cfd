//! The context of a call: the combined options of its caller, request and handle.
//!
//! The retry future, the implementation of `tower::retry::Policy` and `retry` create one for each call.

#[cfg(feature = "http")]
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "http")]
use reattempt_core::{Account, Budget};
use reattempt_core::{Limits, Schedule, SentAt, ServerHint, StopReason, Terms};

#[cfg(feature = "http")]
use super::finish::Finish;
use super::settings::Settings;
use crate::call::clock::Instant;
use crate::call::deadline::Deadline;
use crate::call::nesting::NestedMarker;
use crate::call::options::CallOptions;
use crate::call::protocol::Protocol;
use crate::call::random::{CallRandom, Seed};
use crate::call::report::ReportSlot;
use crate::call::request_terms::{RequestTerms, RetrySafety};

/// The context of a call, which does not change after the start.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The time at which the call first returned `Pending`.
    pub(crate) started: Option<Instant>,
    /// The call's deadline.
    pub deadline: Option<Instant>,
    pub(crate) repeatable: bool,
    /// `true` if the request is repeatable only because of an idempotency key, whether generated or set by the caller.
    pub(crate) keyed: bool,
    /// The reason why this call must not be retried at all, if any.
    pub(crate) forbidden: Option<StopReason>,
    /// The call's overrides, combined.
    pub options: Option<CallOptions>,
    /// The number of the random stream, used if the policy has a seed.
    stream: u64,
    /// The marker of an outer retry layer, found in the request.
    pub(crate) outer: Option<NestedMarker>,
    /// `true` if waits block the thread or use the caller's timer, so that no runtime is needed.
    pub(crate) own_timer: bool,
}

/// The time for which servers usually keep an idempotency key.
const KEY_LIFE: Duration = Duration::from_secs(24 * 3600);

impl CallContext {
    /// Creates the context of a call. The request's options take precedence over the handle's.
    #[inline]
    pub fn new<P: Protocol, Backoff, B>(
        settings: &Settings<P, Backoff, B>,
        mut terms: RequestTerms,
        of_handle: Option<&CallOptions>,
    ) -> Self {
        let options = terms.take_options(of_handle);
        let own = options.as_ref();
        let outer = terms.outer.or_else(|| own?.nesting()?.outer.clone());
        let forbidden = if settings.nested && outer.is_some() {
            Some(StopReason::Nested)
        } else if settings.never || own.is_some_and(CallOptions::never) {
            Some(StopReason::Forbidden)
        } else {
            None
        };
        let deadlines = terms.deadline.into_iter().chain(own.and_then(CallOptions::get_deadline));
        CallContext {
            started: None,
            deadline: deadlines.min().map(Deadline::instant),
            repeatable: false,
            keyed: false,
            forbidden,
            stream: settings.seed.as_ref().map_or(0, Seed::next_stream),
            outer,
            own_timer: false,
            options,
        }
    }

    /// Returns the marker for inner layers.
    pub(crate) fn marker(&self) -> NestedMarker {
        let nesting = self.options.as_ref().and_then(CallOptions::nesting);
        nesting.map(|nesting| nesting.own.clone()).unwrap_or_default().set()
    }

    /// Creates the context of a call without options, but with an optional deadline.
    #[cfg(feature = "http")]
    #[inline]
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        Self { deadline, ..Self::default() }
    }

    /// Returns `true` if the caller and the policy allow retries, so that the request must be saved.
    #[inline]
    pub fn saves(&self, policy: &Limits) -> bool {
        self.forbidden.is_none() && self.max_attempts(policy) > 1
    }

    /// Returns the maximum number of attempts.
    #[inline]
    pub(crate) fn max_attempts(&self, policy: &Limits) -> u32 {
        let own = self.options.as_ref().and_then(CallOptions::get_max_attempts);
        own.unwrap_or(policy.max_attempts)
    }

    /// Returns the server hint that a budget records for a permanent failure. It is empty if the call could not be
    /// retried anyway.
    pub(crate) fn permanent_hint(&self, policy: &Limits, hint: ServerHint) -> ServerHint {
        let method = self.options.as_ref().and_then(CallOptions::method);
        let has_policy = method.is_none_or(|method| method.has_policy());
        if has_policy && self.saves(policy) { hint } else { ServerHint::None }
    }

    /// Returns `true` if the caller forbids processing the request twice.
    pub(crate) fn is_once(&self) -> bool {
        self.options.as_ref().and_then(CallOptions::get_repeatable) == Some(false)
    }

    /// Records whether the request, regardless of the caller's options, may be retried at all and may be processed
    /// twice.
    pub fn set_safety(&mut self, found: RetrySafety) {
        let own = self.options.as_ref().and_then(CallOptions::get_repeatable);
        self.keyed |= found.keyed;
        self.repeatable = own.unwrap_or(found.repeatable || self.keyed);
        if !found.may_retry {
            self.forbidden.get_or_insert(StopReason::Forbidden);
        }
    }

    /// Returns `true` if only a key makes the request repeatable. The caller has not declared it so.
    pub(crate) fn needs_key(&self) -> bool {
        self.keyed && self.options.as_ref().and_then(CallOptions::get_repeatable).is_none()
    }

    /// Records that another server may have processed the request. A key then no longer permits a retry, because each
    /// server recognises only its own keys.
    pub(crate) fn void_key(&mut self) {
        if self.needs_key() {
            self.repeatable = false;
        }
    }

    /// Returns the accounting for the end of a response. Only an open response has an `account`, because the head of
    /// any other contains its status. An attempt after the first has the time at which it was `sent`.
    #[cfg(feature = "http")]
    pub(crate) fn finish<P, Strategy, B>(
        &self,
        settings: &Arc<Settings<P, Strategy, B>>,
        destination: String,
        retryable: bool,
        (attempts, account): (u32, Option<Account>),
        sent: Option<Duration>,
    ) -> Finish
    where
        P: Protocol,
        Strategy: Send + Sync + 'static,
        B: Budget,
    {
        Finish {
            client: Arc::<Settings<P, Strategy, B>>::clone(settings),
            destination,
            options: self.options.clone(),
            retryable,
            has_status: account.is_none(),
            account: account.unwrap_or_default(),
            attempts,
            sent: sent.or_else(|| self.started.map(Instant::since_epoch)).unwrap_or(Duration::MAX),
            deadline: self.deadline,
            sleep: None,
        }
    }

    /// Returns the slot for the call's report, if the caller has set one.
    #[inline]
    pub fn slot(&self) -> Option<&ReportSlot> {
        self.options.as_ref().and_then(CallOptions::slot)
    }

    /// Returns the call's random numbers.
    pub(super) fn random<P: Protocol, Backoff, B>(&self, settings: &Settings<P, Backoff, B>) -> CallRandom {
        CallRandom::unseeded(settings.seed.as_ref().map(|_| self.stream))
    }

    /// Notifies the call's schedule of an attempt that is sent.
    #[inline]
    pub fn on_send<Backoff: Schedule>(&self, of_policy: &Backoff) -> SentAt {
        match self.options.as_ref().and_then(CallOptions::get_schedule) {
            Some(own) => own.on_send(),
            None => of_policy.on_send(),
        }
    }

    /// Returns `true` if the call's schedule ignores notifications.
    #[inline]
    pub(crate) fn is_stateless<Backoff: Schedule>(&self, of_policy: &Backoff) -> bool {
        match self.options.as_ref().and_then(CallOptions::get_schedule) {
            Some(own) => own.is_stateless(),
            None => of_policy.is_stateless(),
        }
    }

    /// Notifies the call's schedule of a success.
    #[inline]
    pub fn succeeded<P: Protocol, Backoff: Schedule, B>(&self, settings: &Settings<P, Backoff, B>, sent_at: SentAt) {
        let mut random = self.random(settings);
        match self.options.as_ref().and_then(CallOptions::get_schedule) {
            Some(own) => own.on_success(sent_at, &mut random),
            None => settings.strategy.on_success(sent_at, &mut random),
        }
    }

    /// Returns the terms of the call.
    pub(crate) fn terms(&self, policy: &Limits) -> Terms {
        let mut terms = Terms::new(self.limits(policy));
        (terms.repeatable, terms.forbidden) = (self.repeatable, self.forbidden);
        terms
    }

    /// Returns the policy's limits with the call's overrides.
    pub(crate) fn limits(&self, policy: &Limits) -> Limits {
        let options = self.options.as_ref();
        let mut limits = *policy;
        if let Some(attempts) = options.and_then(CallOptions::get_max_attempts) {
            limits.max_attempts = attempts;
        }
        if let Some(elapsed) = options.and_then(CallOptions::get_max_elapsed) {
            limits.max_elapsed = elapsed;
        }
        if let Some(delay) = options.and_then(CallOptions::get_max_server_delay) {
            limits.max_server_delay = delay;
        }
        if self.keyed {
            let elapsed = limits.max_elapsed.unwrap_or(KEY_LIFE);
            limits.max_elapsed = Some(elapsed.min(KEY_LIFE));
        }
        limits
    }
}
