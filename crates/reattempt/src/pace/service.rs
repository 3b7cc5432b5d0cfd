//! The paced client: it sends a call whose turn is due, and queues every other.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::task::{Context, Poll};

use reattempt_schedule_responsive::Responsive;
use tokio::time::Instant;
use tower_service::Service;

use super::ResponseFuture;
use super::future::can_refuse;
use super::queue::Blocked;
use super::request::Paced;
use super::settings::Settings;
use crate::call::clock;
use crate::error_mode::{ErrorMode, OwnError};
use crate::protocol::{ClassifyOutcome, Http};

/// A client whose calls are paced, made by [`PaceLayer`](crate::pace::PaceLayer).
///
/// The error type is the inner service's own, unless errors are boxed. The response type is the inner service's own
/// too, but a protocol with responses of its own wraps the body. Clones share the pace and the queue. A clone costs a
/// clone of the inner service. So does a call that waits, because it keeps the readied instance.
///
/// A wait needs a tokio runtime with its time driver on. Without a runtime, calls are sent and do not wait.
pub struct Pace<S, K = Http, M = OwnError> {
    inner: S,
    settings: Arc<Settings<K>>,
    /// Present from the first time that this handle waits to become ready.
    blocked: Option<Blocked>,
    mode: PhantomData<fn() -> M>,
}

impl<S, K, M> Pace<S, K, M> {
    pub(super) fn new(settings: Arc<Settings<K>>, inner: S) -> Self {
        Self { inner, settings, blocked: None, mode: PhantomData }
    }

    /// Returns the pace, to read its interval and its counts.
    pub fn pace(&self) -> &Responsive {
        &self.settings.pace
    }

    /// Returns the inner service.
    pub fn get_ref(&self) -> &S {
        &self.inner
    }

    /// Returns the inner service.
    pub fn into_inner(self) -> S {
        self.inner
    }
}

impl<S, Req, K, M> Service<Req> for Pace<S, K, M>
where
    S: Service<Req> + Clone,
    K: ClassifyOutcome<S::Response> + Paced<Req>,
    M: ErrorMode<S::Error>,
{
    type Response = K::Answer;
    type Error = M::Error;
    type Future = ResponseFuture<S, Req, K, M>;

    /// Ready when the inner service is. Where a call cannot be turned away, it is also not ready while
    /// as many calls wait as may.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), M::Error>> {
        let settings = &*self.settings;
        if !can_refuse::<M, _>() && !settings.pace.interval().is_zero() && clock::has_timer() {
            let now = clock::since_epoch(Instant::now());
            if !settings.queue.has_room(&settings.pace, now, &mut self.blocked, cx.waker()) {
                return Poll::Pending;
            }
        }
        self.inner.poll_ready(cx).map_err(M::own)
    }

    /// Sends the request by the readied inner service: at once if its turn is due and no other call
    /// waits. Else the call enters the queue when the future is first polled.
    fn call(&mut self, request: Req) -> Self::Future {
        let settings = Arc::clone(&self.settings);
        if settings.is_turn() {
            let sent = settings.on_send();
            return ResponseFuture::sent(settings, sent, self.inner.call(request));
        }
        let deadline = settings.protocol.deadline(&request);
        let spare = self.inner.clone();
        let readied = std::mem::replace(&mut self.inner, spare);
        ResponseFuture::waiting(settings, deadline, readied, request)
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
