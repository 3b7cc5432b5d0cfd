//! The service.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_schedule_responsive::Responsive;
use tower_service::Service;

use super::PaceFuture;
use super::settings::Settings;
use crate::error_mode::{ErrorMode, OwnError};
use crate::protocol::{Http, Judge};

/// A client whose calls are paced, made by [`PaceLayer`](crate::PaceLayer).
///
/// Response and error types are the inner service's own, unless errors are boxed. Clones share the
/// pace; a clone costs a clone of the inner service. So does a call that has to wait, for it takes the
/// readied instance with it.
///
/// Waiting needs a tokio runtime with its time driver on. Where there is no runtime calls work and do
/// not wait.
pub struct Pace<S, K = Http, M = OwnError> {
    inner: S,
    settings: Arc<Settings<K>>,
    mode: PhantomData<fn() -> M>,
}

impl<S, K, M> Pace<S, K, M> {
    pub(super) fn new(settings: Arc<Settings<K>>, inner: S) -> Self {
        Self { inner, settings, mode: PhantomData }
    }

    /// The pace, to read its interval and what it has counted.
    pub fn pace(&self) -> &Responsive {
        &self.settings.pace
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

impl<S, Req, K, M> Service<Req> for Pace<S, K, M>
where
    S: Service<Req> + Clone,
    K: Judge<S::Response>,
    M: ErrorMode<S::Error>,
{
    type Response = S::Response;
    type Error = M::Error;
    type Future = PaceFuture<S, Req, K, M>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        self.inner.poll_ready(cx).map_err(M::own)
    }

    /// Sends the request by the readied inner service: at once, or after the interval that stands at
    /// this moment, from the first poll of the future on.
    fn call(&mut self, request: Req) -> Self::Future {
        let settings = Arc::clone(&self.settings);
        let interval = settings.pace.interval();
        if interval.is_zero() {
            let sent = settings.admit();
            return PaceFuture::sent(settings, sent, self.inner.call(request));
        }
        let spare = self.inner.clone();
        let readied = std::mem::replace(&mut self.inner, spare);
        PaceFuture::waiting(settings, interval, readied, request)
    }
}

impl<S: Clone, K, M> Clone for Pace<S, K, M> {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.settings), self.inner.clone())
    }
}

impl<S: fmt::Debug, K: fmt::Debug, M> fmt::Debug for Pace<S, K, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("inner", &self.inner)
            .field("settings", &self.settings)
            .finish()
    }
}
