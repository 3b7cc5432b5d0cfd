//! The decision whether to resume after a break, and the state of the resume.

mod end;
mod head;

use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::StatusCode;
use http::response::Parts;
use reattempt_core::guard::Refused;
use reattempt_core::{
    Account, Budget, CallEnd, Classification, FailedAttempt, Failure, FailureKind, Schedule, SentAt, StopReason,
    Verdict,
};
use reattempt_engine::classify::RequestView;
use reattempt_engine::protocol::RequestProtocol;
use reattempt_engine::wall::clock::{Instant, sleep_until};
use reattempt_engine::wall::{CallContext, Granted, LastOutcome, Progress, chain, clock, is_from_fallback};
use reattempt_engine::{CallOptions, Report};
use tokio::time::Sleep;
use tower::BoxError;

#[cfg(feature = "digest")]
use super::digest::Digest;
use super::message::Target;
use super::settings::{Rules, Settings};
use super::{BrokenOff, Mismatch, NotContinued, Part, ResumePoint, Source};

/// The number of bytes after which the budget records a resume as a success. A server that breaks each time after fewer
/// bytes uses up the budget.
const WORTHWHILE: u64 = 64 * 1024;

/// A part that ended before the end of the content.
pub(super) enum Break {
    /// The part failed.
    Error(BoxError),
    /// The part ended without an error.
    Early(BrokenOff),
}

/// The state of the resumes of one body.
pub(super) struct Resumption<R: Source, Backoff: Schedule, B> {
    source: R,
    settings: Arc<Settings<Backoff, B>>,
    rules: Rules,
    context: CallContext,
    destination: Box<str>,
    /// The final target of the first request, if it is known.
    target: Option<Target>,
    /// `true` if the target has the requested path: there was no redirect, except perhaps to another host.
    is_as_requested: bool,
    /// `true` if an inner fallback replaced the first response.
    from_fallback: bool,
    /// `true` if the whole content was sent in place of the rest, which is accepted once.
    skipped_whole: bool,
    /// The time at which the first response head arrived.
    began: Instant,
    /// The number of the current attempt.
    number: u32,
    sent_at: SentAt,
    /// The digest to verify, until the last byte.
    #[cfg(feature = "digest")]
    digest: Option<Digest>,
    /// The number of bytes read from the current part.
    gained: u64,
    /// `true` if the last resume's success was recorded in the budget.
    is_settled: bool,
    /// `None` until the body first breaks.
    progress: Option<Progress<Backoff::Delays>>,
    /// The break to return if the body is not resumed.
    broke: Option<BoxError>,
    stage: Stage<R::Future>,
    /// The timer that limits the wait for the rest.
    limit: Option<Pin<Box<Sleep>>>,
}

/// The stage of a resume.
enum Stage<F> {
    /// A part is being read.
    Reading,
    /// A resume is granted. The budget may have to confirm it.
    Granted(Granted),
    Waiting(Pin<Box<Sleep>>),
    Sent(Pin<Box<F>>),
}

impl<R: Source, Backoff: Schedule, B> Resumption<R, Backoff, B> {
    /// Returns the context of a call.
    pub(super) fn context(
        settings: &Settings<Backoff, B>,
        request: RequestView<'_>,
        of_handle: Option<&CallOptions>,
    ) -> CallContext {
        let protocol = &settings.protocol;
        let mut context = CallContext::new(settings, protocol.terms(request), of_handle);
        context.set_safety(protocol.retry_safety(request));
        context
    }

    /// Creates the state of a body that has not broken.
    pub(super) fn new(
        (settings, rules): (Arc<Settings<Backoff, B>>, Rules),
        context: CallContext,
        destination: Box<str>,
        source: R,
        path: &str,
        response: &mut Parts,
    ) -> Self {
        // Removed because outer layers do not need it.
        let target = response.extensions.remove::<Target>();
        Self {
            source,
            settings,
            rules,
            context,
            destination,
            is_as_requested: target.as_ref().is_some_and(|target| &*target.path == path),
            target,
            skipped_whole: false,
            #[cfg(feature = "digest")]
            digest: rules.verify_digest.then(|| Digest::of(response.status, &response.headers)).flatten(),
            from_fallback: is_from_fallback(Ok(&response.extensions)),
            began: Instant::now(),
            number: response.extensions.get::<Report>().map_or(1, |report| report.sent.max(1)),
            sent_at: SentAt::default(),
            gained: 0,
            is_settled: true,
            progress: None,
            broke: None,
            stage: Stage::Reading,
            limit: None,
        }
    }

    /// Returns `true` if the caller or the settings forbid resumes of this body.
    pub(super) fn forbids(&self, point: &ResumePoint) -> bool {
        !self.context.saves(&self.settings.limits) || self.rules.tags_only && !point.has_tag()
    }
}

impl<R: Source, Backoff: Schedule, B: Budget> Resumption<R, Backoff, B> {
    /// Records new bytes that were read from the current part.
    pub(super) fn receive(&mut self, bytes: u64, is_last: bool) {
        self.gained = self.gained.saturating_add(bytes);
        let Some(progress) = &mut self.progress else { return };
        if !self.is_settled && (is_last || self.gained >= WORTHWHILE) {
            self.is_settled = true;
            self.context.succeeded(&self.settings, self.sent_at);
            progress.account().settle(CallEnd::Succeeded, &self.destination, &self.settings.budget);
        }
        if is_last {
            self.limit = None;
        }
    }

    /// Requests more, because a part has ended that contained only the beginning of the rest. If the part was small, it
    /// counts as a break, so that a server cannot cause a request for each byte.
    ///
    /// # Errors
    /// Returns the break if the body is not resumed.
    pub(super) fn go_on(&mut self, point: &ResumePoint) -> Result<(), BoxError> {
        if self.gained < WORTHWHILE {
            return self.break_off(Break::Early(BrokenOff::at(point)));
        }
        if let Some(progress) = &mut self.progress {
            progress.continue_at(&self.settings, &self.context, Instant::now(), self.number);
        }
        self.limit = None;
        self.stage = self.send(point);
        Ok(())
    }

    /// Decides whether to resume after a part breaks.
    ///
    /// # Errors
    /// Returns the break if the body is not resumed.
    pub(super) fn break_off(&mut self, broke: Break) -> Result<(), BoxError> {
        let now = Instant::now();
        let (error, classification): (BoxError, _) = match broke {
            Break::Error(error) => {
                let classification = self.classify(Err(&*error));
                (error, classification)
            }
            Break::Early(error) => (Box::new(error), Verdict::Transient(Failure::new(FailureKind::Network)).into()),
        };
        let Self { settings, context, destination, .. } = self;
        let progress =
            self.progress.get_or_insert_with(|| Progress::new(settings, context, self.began, (&**destination).into()));
        let text = chain(&*error);
        if self.gained > 0 || self.broke.is_none() {
            progress.continue_at(settings, context, now, self.number);
            self.limit = None;
            self.broke = Some(error);
        }
        self.failed(now, classification, None, Err(text))
    }

    /// Ends the body, because the response does not continue it.
    pub(super) fn give_up(&mut self, mismatch: Mismatch) -> BoxError {
        let broke = self.stop(StopReason::Permanent, Err(&mismatch));
        Box::new(NotContinued { mismatch, broke })
    }

    /// Polls for the part that continues the body.
    ///
    /// # Errors
    /// Returns the break if the body is not resumed.
    pub(super) fn poll_part(
        &mut self,
        point: &ResumePoint,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(R::Body, Part), BoxError>> {
        if let Poll::Ready(part) = self.poll_stages(point, cx) {
            return Poll::Ready(part);
        }
        if self.limit.is_none() && clock::has_timer() {
            let progress = self.progress.as_ref();
            let limit = progress.and_then(|progress| progress.time_limit(&self.settings.limits, &self.context));
            self.limit = limit.map(|limit| Box::pin(sleep_until(limit)));
        }
        let Some(limit) = &mut self.limit else { return Poll::Pending };
        ready!(clock::poll_interrupt(limit.as_mut(), cx));
        let late = self.context.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let stop = if late { StopReason::DeadlineExceeded } else { StopReason::ElapsedExhausted };
        Poll::Ready(Err(self.stop(stop, Ok(None))))
    }

    fn poll_stages(&mut self, point: &ResumePoint, cx: &mut Context<'_>) -> Poll<Result<(R::Body, Part), BoxError>> {
        loop {
            let next = match &mut self.stage {
                Stage::Granted(granted) => {
                    let due = granted.due;
                    match ready!(self.poll_confirmed(cx)) {
                        Ok(()) => match due {
                            // The body may be polled outside the runtime after the confirmation.
                            Some(_) if !clock::has_timer() => Err(self.withdraw(StopReason::NoTimer)),
                            Some(due) => Ok(Stage::Waiting(Box::pin(sleep_until(due)))),
                            None => Ok(self.send(point)),
                        },
                        Err(stop) => Err(self.stop(stop, Ok(None))),
                    }
                }
                Stage::Waiting(sleep) => {
                    ready!(sleep.as_mut().poll(cx));
                    // The caller may poll long after the delay has ended.
                    match self.check_in_time() {
                        Ok(()) => Ok(self.send(point)),
                        Err(stop) => Err(self.stop(stop, Ok(None))),
                    }
                }
                Stage::Sent(call) => {
                    let outcome = ready!(call.as_mut().poll(cx));
                    self.stage = Stage::Reading;
                    match self.read_head(outcome.map_err(Into::into), point) {
                        Ok(Some(part)) => return Poll::Ready(Ok(part)),
                        Ok(None) => continue,
                        Err(error) => Err(error),
                    }
                }
                // Impossible: no part is missing.
                Stage::Reading => Err(self.stop(StopReason::Permanent, Ok(None))),
            };
            match next {
                Ok(stage) => self.stage = stage,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_confirmed(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StopReason>> {
        let Some(progress) = &mut self.progress else { return Poll::Ready(Ok(())) };
        ready!(progress.poll_confirmed(cx))?;
        Poll::Ready(self.check_in_time())
    }

    /// Withdraws a granted resume if it is too late.
    fn check_in_time(&mut self) -> Result<(), StopReason> {
        let Some(progress) = &mut self.progress else { return Ok(()) };
        progress.check_in_time(&self.settings.limits, &self.context, Instant::now(), false)
    }

    /// Withdraws a granted resume, and ends the body. Returns the break.
    fn withdraw(&mut self, stop: StopReason) -> BoxError {
        if let Some(progress) = &mut self.progress {
            progress.revoke();
        }
        self.stop(stop, Ok(None))
    }

    fn send(&mut self, point: &ResumePoint) -> Stage<R::Future> {
        if let Some(progress) = &mut self.progress {
            if !progress.replaces() {
                self.number = self.number.saturating_add(1);
                progress.notify_retry(&self.settings.observer, self.number);
            }
            progress.on_send(Instant::now());
        }
        self.sent_at = self.context.on_send(&self.settings.strategy);
        (self.gained, self.is_settled) = (0, false);
        Stage::Sent(Box::pin(self.source.request_rest(point.clone())))
    }

    /// Decides whether to resume again after a failed attempt, which ended with a status or an error text.
    fn failed(
        &mut self,
        now: Instant,
        classification: Classification,
        refused: Option<Refused>,
        outcome: Result<StatusCode, Box<str>>,
    ) -> Result<(), BoxError> {
        let code = outcome.as_ref().ok().map(StatusCode::as_u16);
        let Some(progress) = self.progress.as_mut().filter(|_| classification.verdict.failure().is_some()) else {
            let text = outcome.err().map(|text| BoxError::from(String::from(text)));
            let last = text.as_deref().map_or(Ok(code), |error| Err(error as &(dyn Error + 'static)));
            return Err(self.stop(StopReason::Permanent, last));
        };
        let attempt = FailedAttempt { refused, ..FailedAttempt::new(classification, "", Duration::ZERO) };
        let attempt = attempt.sent_at(self.sent_at);
        match progress.failed(&self.settings, &self.context, now, attempt, (None, outcome.err())) {
            Ok(granted) => {
                self.stage = Stage::Granted(granted);
                Ok(())
            }
            Err(stop) => Err(self.stop(stop, Ok(code))),
        }
    }

    /// Ends the body without the rest. Returns the break.
    fn stop(&mut self, stop: StopReason, last: LastOutcome<'_>) -> BoxError {
        self.stage = Stage::Reading;
        self.report_end(stop, last);
        // Always `Some`, because only a body that broke is resumed.
        self.broke.take().unwrap_or_else(|| Box::new(BrokenOff { received: 0, total: 0 }))
    }

    /// Reports the end of the body to the observers and the caller's slot.
    fn report_end(&mut self, stop: StopReason, last: LastOutcome<'_>) {
        let Some(mut progress) = self.progress.take() else { return };
        drop::<Account>(progress.account());
        progress.report_end(&self.settings.observer, (self.number, None), stop, last, Instant::now);
        let report = progress.report(&self.settings.protocol, stop);
        if let Some(slot) = self.context.slot() {
            slot.put(report);
        }
    }

    /// Classifiers do not get a request, because the request for the rest differs from the caller's.
    fn classify(&self, outcome: Result<&Parts, &(dyn Error + 'static)>) -> Classification {
        self.settings.protocol.classify_without_request(outcome, self.context.options.as_ref())
    }
}
