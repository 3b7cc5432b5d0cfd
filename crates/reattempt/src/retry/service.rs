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
    /// A request is large, and each further function that it were handed to by value would copy it
    /// once more: so this is one function, for calls of which nothing special is asked.
    fn call(&mut self, request: Req) -> Self::Future {
        let settings = &*self.shared.policy.settings;
        let protocol = &settings.protocol;
        let never = match &self.options {
            None => settings.limits.max_attempts <= 1 && !protocol.replaces(),
            Some(options) if options.only_forbids() => true,
            Some(_) => return self.call_closely(request),
        };
        let plain = settings.plain && protocol.wants_nothing(&request);
        if never || !plain {
            let never = settings.plain && (never && plain || protocol.only_forbids(&request));
            // Nobody learns anything from the outcome, so it need only be handed on.
            if !M::INTERRUPTS
                && never
                && settings.schedule.is_stateless()
                && settings.budget.is_full()
            {
                let attempt = self.inner.call(protocol.pass(request, Added::default()));
                return RetryFuture {
                    timer: M::Timer::default(),
                    attempt: Some(attempt),
                    call: None,
                };
            }
            return self.call_closely(request);
        }
        let mut kept = None;
        let attempt = protocol.keep(request, Added::default(), &mut kept);
        let sent_at = settings.schedule.on_send();
        let attempt = Some(self.inner.call(attempt));
        let shared = Arc::clone(&self.shared);
        RetryFuture {
            timer: M::Timer::default(),
            attempt,
            call: Some(Call {
                shared,
                kept,
                target: None,
                carried: true,
                setting: Setting::default(),
                number: 1,
                sent_at,
                marker: None,
                retrying: None,
            }),
        }
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
        self.call_closely(request)
    }

    /// A call with all that may be asked for: overrides, hooks, observers, deadlines, seeds.
    fn call_closely<Req>(&mut self, request: Req) -> RetryFuture<S, Req, K, D, B, M>
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
            return RetryFuture { timer: M::Timer::default(), attempt: Some(attempt), call: None };
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
        RetryFuture { timer: M::Timer::default(), attempt, call: Some(call) }
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
        RetryFuture { timer: M::Timer::default(), attempt: None, call: Some(call) }
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
