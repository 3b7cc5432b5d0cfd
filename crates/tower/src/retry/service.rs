//! The service.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use reattempt_core::{Budget, Schedule};
use tower_service::Service;

use super::RetryFuture;
use crate::error_mode::ErrorMode;
use crate::protocol::{Carry, Judge, Origin};
use crate::{CallOptions, RetryPolicy};

/// A client whose calls are retried.
///
/// Response and error types are the inner service's own, unless the policy asks for interruption.
/// A clone costs a clone of the inner service and shares everything else.
pub struct Retry<S, P = RetryPolicy> {
    pub(super) inner: S,
    pub(super) shared: Arc<Shared<S, P>>,
    options: Option<CallOptions>,
}

/// What all clones of a [`Retry`] share with the calls under way.
pub(super) struct Shared<S, P> {
    pub(super) policy: P,
    /// From here the service for a retry is cloned, so that a call that needs none clones nothing.
    /// The lock is there because a service need not be `Sync`; it is held for that clone alone.
    spare: Mutex<S>,
}

impl<S: Clone, P> Shared<S, P> {
    pub(super) fn spare(&self) -> S {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    K: Carry<Req, Attempt = A> + Origin<A, Request = Req> + Judge<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    type Response = S::Response;
    type Error = M::Error;
    type Future = RetryFuture<S, Req, K, D, B, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(M::own)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        RetryFuture::start(&mut self.inner, &self.shared, self.options.as_ref(), request)
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
