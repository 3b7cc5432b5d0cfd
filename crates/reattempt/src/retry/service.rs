//! The service.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use reattempt_core::{Budget, Schedule, SentAt};
use tower_service::Service;

use super::call::{Call, Opening, Retrying};
use super::{RetryFuture, Setting};
use crate::error_mode::ErrorMode;
use crate::protocol::{Added, ClassifyOutcome, Origin, Protocol, Replay};
use crate::retry::policy::Settings;
use crate::{CallOptions, RetryPolicy};

/// A client whose calls are retried.
///
/// Response and error types are the inner service's own, unless the policy asks for interruption.
/// A clone costs a clone of the inner service and shares everything else.
pub struct Retry<S, P = RetryPolicy> {
    pub(crate) inner: S,
    pub(super) shared: Arc<Shared<S, P>>,
    options: Option<CallOptions>,
}

/// What all clones of a [`Retry`] share with the calls under way.
pub(super) struct Shared<S, P> {
    pub(super) policy: P,
    /// The service of the first retry of a call is cloned from here, so that a call that needs none
    /// clones nothing. It sends all retries of its call and is put here afterwards, so that the retries
    /// of the next call go on from there. It was never readied without having sent an attempt since.
    ///
    /// The lock is there because a service need not be `Sync`; only a clone is made under it.
    spare: Mutex<S>,
}

impl<S: Clone, P> Shared<S, P> {
    /// Returns the instance for the retries of one call.
    pub(super) fn spare(&self) -> S {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes back the instance that has sent the retries of a call.
    pub(super) fn give_back(&self, service: S) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *spare, service);
        // A service's destructor may make calls of its own.
        drop(spare);
        drop(before);
    }
}

impl<S: Clone, P> Retry<S, P> {
    /// Wraps `inner` in retries as `policy` says.
    pub fn new(policy: P, inner: S) -> Self {
        let spare = Mutex::new(inner.clone());
        Self { inner, shared: Arc::new(Shared { policy, spare }), options: None }
    }

    /// A handle to the same client whose calls all have these options, but for what a request sets
    /// itself.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self.clone() }
    }
}

impl<S, P> Retry<S, P> {
    /// The policy, to read its budget.
    pub fn policy(&self) -> &P {
        &self.shared.policy
    }

    /// The inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// The inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Req, A, K, D, B, M> Service<Req> for Retry<S, RetryPolicy<K, D, B, M>>
where
    S: Service<A> + Clone,
    K: Replay<Req, Attempt = A> + Origin<A, Request = Req> + ClassifyOutcome<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    type Response = K::Answer;
    type Error = M::Error;
    type Future = RetryFuture<S, Req, K, D, B, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(M::own)
    }

    /// Keeps what it needs of the request and sends the first attempt by the readied inner service.
    ///
    /// With a [`before_attempt`](RetryPolicy::before_attempt) hook, and for a call that is not sent, what
    /// the readied instance has reserved is released.
    ///
    /// A request is large, and a function that takes it by value copies it once more. So the plan is made by
    /// reference, and [`Plan::Plain`] is carried out here.
    fn call(&mut self, request: Req) -> Self::Future {
        let settings = &*self.shared.policy.settings;
        let protocol = &settings.protocol;
        match Plan::of::<K, Req, D, B, M, S::Error>(settings, self.options.as_ref(), &request) {
            Plan::Pass => {
                let attempt = self.inner.call(protocol.pass(request, Added::default()));
                RetryFuture::new(Some(attempt), None)
            }
            Plan::Plain => {
                let mut kept = None;
                let attempt = protocol.keep(request, Added::default(), &mut kept);
                let sent_at = settings.schedule.on_send();
                let attempt = Some(self.inner.call(attempt));
                let shared = Arc::clone(&self.shared);
                let call = Call {
                    shared,
                    kept,
                    target: None,
                    carried: true,
                    setting: Setting::default(),
                    number: 1,
                    sent_at,
                    marker: None,
                    retrying: None,
                };
                RetryFuture::new(attempt, Some(call))
            }
            Plan::Full => self.call_in_full(request),
        }
    }
}

/// The way to carry out a call, chosen by a look at its request.
enum Plan {
    /// The attempt's outcome is the call's: nothing is kept, and nothing depends on the outcome.
    Pass,
    /// The request is kept, and nothing else is needed before the first attempt.
    Plain,
    /// The options of the call, a hook, a deadline or a seed may need something before the first attempt.
    Full,
}

impl Plan {
    #[inline]
    fn of<K, Req, D, B, M, E>(
        settings: &Settings<K, D, B>,
        of_handle: Option<&CallOptions>,
        request: &Req,
    ) -> Self
    where
        K: Replay<Req>,
        D: Schedule,
        B: Budget,
        M: ErrorMode<E>,
    {
        let protocol = &settings.protocol;
        let never = match of_handle {
            None => settings.limits.max_attempts <= 1 && !protocol.replaces(),
            Some(options) if options.only_forbids() => true,
            Some(_) => return Self::Full,
        };
        if !settings.plain {
            return Self::Full;
        }
        let plain = protocol.wants_nothing(request);
        if plain && !never {
            return Self::Plain;
        }
        let never = plain || protocol.only_forbids(request);
        let passes = never && !M::INTERRUPTS && settings.learns_nothing();
        if passes { Self::Pass } else { Self::Full }
    }
}

impl<S, K, D, B, M> Retry<S, RetryPolicy<K, D, B, M>>
where
    K: Protocol,
    D: Schedule,
    B: Budget,
{
    /// A call with these options, by the readied inner service.
    pub(crate) fn call_with<Req>(
        &mut self,
        options: CallOptions,
        request: Req,
    ) -> RetryFuture<S, Req, K, D, B, M>
    where
        S: Service<K::Attempt> + Clone,
        K: Replay<Req> + ClassifyOutcome<S::Response>,
        M: ErrorMode<S::Error>,
    {
        self.options = Some(options);
        self.call_in_full(request)
    }

    /// Carries out [`Plan::Full`].
    fn call_in_full<Req>(&mut self, request: Req) -> RetryFuture<S, Req, K, D, B, M>
    where
        S: Service<K::Attempt> + Clone,
        K: Replay<Req> + ClassifyOutcome<S::Response>,
        M: ErrorMode<S::Error>,
    {
        let settings = &*self.shared.policy.settings;
        let protocol = &settings.protocol;
        let mut opening = Opening::new(settings, self.options.as_ref(), &request);
        let cut_short = M::INTERRUPTS || (M::ANSWERS && opening.setting.deadline.is_some());
        if !cut_short && !opening.keeps && opening.is_noop(settings) {
            let attempt = self.inner.call(protocol.pass(request, opening.added()));
            return RetryFuture::new(Some(attempt), None);
        }
        let (mut kept, mut target) = (None, None);
        if M::ENDS_LATE && opening.is_too_late() {
            self.release();
            return self.too_late(opening.setting);
        }
        let attempt = if opening.keeps {
            protocol.keep(request, opening.added(), &mut kept)
        } else {
            if settings.observer.is_some() || settings.counts_calls || !settings.budget.is_full() {
                target = Some(protocol.target(&request).into());
            }
            protocol.pass(request, opening.added())
        };
        let shared = Arc::clone(&self.shared);
        let (sent_at, attempt, retrying) = if settings.hook.is_some() {
            // The hook may need what the readied instance holds, so no instance is readied before it
            // is done.
            self.inner = self.inner.clone();
            let spare = shared.spare();
            let retrying = opening.prepare::<S, Req, K, D, B, M>(settings, spare, attempt);
            (SentAt::default(), None, Some(retrying))
        } else {
            let sent_at = opening.setting.on_send(&settings.schedule);
            let attempt = self.inner.call(attempt);
            let clones = settings.clone_per_call && opening.keeps;
            let retrying = clones.then(|| Retrying::sent_by(self.inner.clone()));
            (sent_at, Some(attempt), retrying)
        };
        let mut call = Call {
            shared,
            kept,
            target,
            carried: opening.keeps,
            setting: opening.setting,
            number: 1,
            sent_at,
            marker: opening.marker,
            retrying,
        };
        if settings.counts_calls {
            call.count();
        }
        RetryFuture::new(attempt, Some(call))
    }

    /// Gives up what the readied instance has reserved: a permit, say, or a place in a queue.
    pub(crate) fn release(&mut self)
    where
        S: Clone,
    {
        self.inner = self.inner.clone();
    }

    /// A call whose deadline has passed before it is sent (rule DL-3).
    #[cold]
    fn too_late<Req>(&self, setting: Setting) -> RetryFuture<S, Req, K, D, B, M>
    where
        S: Service<K::Attempt> + Clone,
        K: Replay<Req> + ClassifyOutcome<S::Response>,
        M: ErrorMode<S::Error>,
    {
        let call = Call {
            shared: Arc::clone(&self.shared),
            kept: None,
            target: None,
            carried: false,
            setting,
            number: 0,
            sent_at: SentAt::default(),
            marker: None,
            retrying: Some(Retrying::new()),
        };
        RetryFuture::new(None, Some(call))
    }
}

impl<S: Clone, P> Clone for Retry<S, P> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
            options: self.options.clone(),
        }
    }
}

impl<S: fmt::Debug, P: fmt::Debug> fmt::Debug for Retry<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .field("policy", &self.shared.policy)
            .field("options", &self.options)
            .finish()
    }
}
