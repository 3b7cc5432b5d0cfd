//! The future of a call whose failure may be replaced.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::Extensions;
use pin_project_lite::pin_project;
use reattempt_engine::error::{BoxedError, TimeLimit};
use reattempt_engine::observe::Event;
use reattempt_engine::wall::clock::{Instant, sleep_until};
use reattempt_engine::wall::{Testimony, clock, is_refused_here, notify};
use reattempt_engine::{CallOptions, Deadline, Report, TimedOut};
use reattempt_guard::contract::GuardOutcome;
use tokio::time::Sleep;
use tower::BoxError;
use tower_service::Service;

use super::shared::Shared;
use super::{BackupFailed, Failed, FellBack, Replaceable, Replacement, Source};

pin_project! {
    /// The future of a call whose failure may be replaced.
    ///
    /// If the deadline passes during the backup's call, the error is a [`BackupFailed`] around a [`TimedOut`]. If the
    /// future is polled again after completion, it stays pending.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call, or the backup's call. No fallback is produced for a dropped call.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, F, P>
    where
        S: Service<Req>,
        F: Source<P, Req, S::Response>,
        P: Replaceable<S::Response>,
    {
        // `None` once the call has ended.
        #[pin]
        call: Option<S::Future>,
        waiting: Waiting<Req, S::Response, F, P>,
        backup_call: Option<BackupCall<S::Response>>,
    }
}

/// The state that is needed when the call ends.
pub(super) struct Waiting<Req, R, F: Source<P, Req, R>, P> {
    pub(super) shared: Arc<Shared<F, P>>,
    pub(super) saved: Option<F::Saved>,
    pub(super) options: Option<CallOptions>,
    pub(super) deadline: Option<Deadline>,
    pub(super) repeatable: bool,
    /// `Some` if a refusal is proof only together with this witness.
    pub(super) testimony: Option<Testimony>,
    /// `Some` only if an observer is set.
    pub(super) destination: Option<Box<str>>,
}

/// A failed call whose request is being sent to a backup. The failed response's body has been dropped, which releases
/// its place in any guard.
struct BackupCall<R> {
    backup: Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>>,
    failed: Failed,
    began: Instant,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl<S, Req, F, P> ResponseFuture<S, Req, F, P>
where
    S: Service<Req>,
    F: Source<P, Req, S::Response>,
    P: Replaceable<S::Response>,
{
    pub(super) fn new(call: S::Future, waiting: Waiting<Req, S::Response, F, P>) -> Self {
        Self { call: Some(call), waiting, backup_call: None }
    }
}

impl<S, Req, F, P> Future for ResponseFuture<S, Req, F, P>
where
    S: Service<Req, Error: Into<BoxError>>,
    F: Source<P, Req, S::Response>,
    P: GuardOutcome<S::Response, S::Error, BoxedError> + Replaceable<S::Response>,
{
    type Output = Result<<P as Replaceable<S::Response>>::Replaced, BoxError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let waiting = &mut *this.waiting;
        if let Some(call) = this.call.as_mut().as_pin_mut() {
            let result = ready!(call.poll(cx)).map_err(Into::into);
            this.call.set(None);
            let saved = waiting.saved.take();
            let outcome = result.as_ref().map_err(|error| &**error as _);
            let Some(unprocessed) = waiting.shared.fails(outcome, waiting.options.as_ref()) else {
                return Poll::Ready(result.map(|response| {
                    let (head, body) = P::split(response);
                    P::from_service(head, body)
                }));
            };
            let proof = unprocessed && waiting.is_proof(outcome.err());
            let (failed, body) = match result.map(P::split) {
                Ok((head, body)) => (Failed(Ok(head)), Some(body)),
                Err(error) => (Failed(Err(error)), None),
            };
            let Some(saved) = saved else {
                return Poll::Ready(own_outcome::<S::Response, P>(failed, body));
            };
            let sendable = waiting.repeatable || proof;
            match waiting.shared.source.replace(saved, &failed, sendable, waiting.deadline) {
                Replacement::None => {
                    return Poll::Ready(own_outcome::<S::Response, P>(failed, body));
                }
                Replacement::Made(response) => {
                    let (mut head, data) = response.into_parts();
                    waiting.mark(&mut head.extensions, failed, true);
                    return Poll::Ready(Ok(P::from_memory(head, data)));
                }
                Replacement::Sent(backup) => {
                    let began = Instant::now();
                    *this.backup_call = Some(BackupCall { backup, failed, began, sleep: None });
                }
            }
        }
        // If the future is polled again after completion, it stays pending.
        let Some(backup_call) = this.backup_call else { return Poll::Pending };
        let result = match backup_call.backup.as_mut().poll(cx) {
            Poll::Ready(result) => result,
            Poll::Pending => Err(ready!(backup_call.poll_deadline(waiting.deadline, P::source_of_time_limit, cx))),
        };
        let Some(BackupCall { failed, .. }) = this.backup_call.take() else {
            return Poll::Pending;
        };
        // The backup may have processed the request, so the call's outcome is the backup's in any case.
        Poll::Ready(match result {
            Ok(response) => {
                let helps = waiting.shared.fails(Ok(&response), waiting.options.as_ref()).is_none();
                let (mut head, body) = P::split(response);
                waiting.mark(&mut head.extensions, failed, helps);
                Ok(P::from_service(head, body))
            }
            Err(source) => Err(BackupFailed { failed, source }.into()),
        })
    }
}

impl<Req, R, F: Source<P, Req, R>, P: Replaceable<R>> Waiting<Req, R, F, P> {
    /// Returns `true` if the protocol accepts the outcome as proof that the request was not processed.
    fn is_proof(&self, error: Option<&(dyn Error + 'static)>) -> bool {
        let (protocol, testimony) = (&self.shared.protocol, self.testimony.as_ref());
        let witnessed = || testimony.is_none_or(Testimony::is_refused);
        testimony.is_none_or(Testimony::is_proven)
            && error.is_none_or(|error| protocol.errors_prove() || (is_refused_here(error) && witnessed()))
    }

    /// Marks a replacement response, and notifies the observer if `helps` is `true`.
    fn mark(&self, extensions: &mut Extensions, failed: Failed, helps: bool) {
        if let (true, Some(observer), Some(destination)) = (helps, &self.shared.observer, &self.destination) {
            notify(&**observer, destination, &Event::FellBack);
        }
        if let (Some(report), None) = (failed.report(), extensions.get::<Report>()) {
            extensions.insert(report.clone());
        }
        extensions.insert(FellBack(Arc::new(failed)));
    }
}

impl<R> BackupCall<R> {
    /// Returns `Ready` with a timeout error once the call's deadline has passed.
    fn poll_deadline(
        &mut self,
        deadline: Option<Deadline>,
        source: fn() -> Option<BoxError>,
        cx: &mut Context<'_>,
    ) -> Poll<BoxError> {
        let Some(deadline) = deadline.filter(|_| clock::has_timer()) else { return Poll::Pending };
        let due = || Box::pin(sleep_until(deadline.instant()));
        ready!(clock::poll_interrupt(self.sleep.get_or_insert_with(due).as_mut(), cx));
        let (limit, after) = (TimeLimit::Deadline, self.began.elapsed());
        Poll::Ready(TimedOut::new(limit, after).caused_by(source()).into())
    }
}

/// Returns the original outcome.
fn own_outcome<R, P: Replaceable<R>>(failed: Failed, body: Option<P::Body>) -> Result<P::Replaced, BoxError> {
    match (failed.0, body) {
        (Ok(head), Some(body)) => Ok(P::from_service(head, body)),
        (Ok(head), None) => Ok(P::from_memory(head, Bytes::new())),
        (Err(error), _) => Err(error),
    }
}

impl<S, Req, F, P> fmt::Debug for ResponseFuture<S, Req, F, P>
where
    S: Service<Req>,
    F: Source<P, Req, S::Response>,
    P: Replaceable<S::Response>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (&self.call, &self.backup_call) {
            (Some(_), _) => "calling",
            (None, Some(_)) => "calling the backup",
            (None, None) => "over",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}
