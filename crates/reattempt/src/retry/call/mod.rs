//! The state of one call of the retry layer, from its request to its outcome.
//!
//! While the first attempt runs it contains the saved request and little else. The first failure makes one
//! box with all that only retries need: the progress of the call and the stage of the next attempt.

mod attempt_end;
mod call_end;
mod confirmation;
mod stage;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;

use pin_project_lite::pin_project;
use reattempt_control::Trail;
use reattempt_core::{Account, Budget, Schedule, SentAt};
use tokio::time::{Instant, Sleep};
use tower_service::Service;

use self::stage::Stage;
use crate::call::context::CallContext;
use crate::call::deadline::Deadline;
use crate::call::frame::{Frame, Tried};
use crate::call::options::CallOptions;
use crate::call::progress::{Granted, Progress};
use crate::call::settings::Settings;
use crate::call::timed_out::RefusedResponse;
use crate::error_mode::ErrorMode;
use crate::policy::RetryPolicy;
use crate::protocol::{Added, ClassifyOutcome, NestedMarker, Protocol, Replay, Saved};
use crate::shared::Shared;

/// The state of a call.
pub(super) struct Call<S, Req, K, D, B, M>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    pub(in crate::retry) shared: SharedBy<S, K, D, B, M>,
    pub(in crate::retry) kept: Option<K::Saved>,
    /// The destination, recorded only if the request was not saved and a budget or observer needs it.
    pub(in crate::retry) target: Option<Box<str>>,
    pub(in crate::retry) context: CallContext,
    /// `true` if the request was saved at all.
    pub(in crate::retry) saved: bool,
    /// The number of the attempt under way, from 1.
    pub(in crate::retry) number: u32,
    pub(in crate::retry) sent_at: SentAt,
    /// The frame of the first attempt.
    pub(in crate::retry) first: Frame,
    /// The marker that this layer leaves in the request for inner ones.
    pub(in crate::retry) marker: Option<NestedMarker>,
    pub(in crate::retry) retrying: Option<BoxedRetrying<S, Req, K, D, M>>,
}

/// The state that a call shares with all others of its client.
pub(super) type SharedBy<S, K, D, B, M> = Arc<Shared<S, RetryPolicy<K, D, B, M>>>;

/// The end of a call, or `N` to go on with.
type Onwards<T, E, N> = ControlFlow<Result<T, E>, N>;

pub(super) type BoxedRetrying<S, Req, K, D, M> = Pin<
    Box<
        Retrying<
            S,
            <S as Service<<K as Replay<Req>>::Attempt>>::Response,
            <K as ClassifyOutcome<<S as Service<<K as Replay<Req>>::Attempt>>::Response>>::Drain,
            <K as Protocol>::Head,
            <K as Replay<Req>>::Rest,
            <M as ErrorMode<<S as Service<<K as Replay<Req>>::Attempt>>::Error>>::Error,
            <D as Schedule>::Delays,
        >,
    >,
>;

pin_project! {
    /// The state that only retries need.
    pub(in crate::retry) struct Retrying<S, A, R, H, T, E, D> {
        progress: Option<Progress<D>>,
        // The outcome of the last attempt, while the budget has yet to confirm its retry.
        held: Option<Box<Held<A, E>>>,
        // The error that the last attempt ended with, in case its retry is not sent.
        last_error: Option<E>,
        // The head of the response that was refused last, for a hook or an error.
        refused: Option<RefusedResponse>,
        // The start of the call, for a budget that counts calls.
        counted: Account,
        // The endpoint of the attempt under way, if it is a retry or one that is sent late.
        tried: Tried,
        // The endpoints of the attempts that have failed.
        trail: Trail,
        // The moment by which hook and service must be ready for the next attempt, if there is a limit.
        ready_by: Option<Instant>,
        // The timer of whatever stage is waited for.
        #[pin]
        sleep: Option<Sleep>,
        #[pin]
        stage: Stage<S, R, H, T>,
    }
}

/// An outcome, and the retry that was granted after it.
struct Held<A, E> {
    result: Result<A, E>,
    granted: Granted,
}

impl<S, A, R, H: Send + 'static, T, E, D> Retrying<S, A, R, H, T, E, D> {
    pub(in crate::retry) fn new() -> Pin<Box<Self>> {
        Self::at(Stage::Sent { service: None }, None)
    }

    /// Creates the state of a first attempt whose endpoint is known later.
    #[inline]
    pub(in crate::retry) fn of_late(first: Frame) -> Option<Pin<Box<Self>>> {
        first.is_late().then(|| {
            let mut retrying = Self::new();
            *retrying.as_mut().project().tried = first.into();
            retrying
        })
    }

    /// Records the instance that is to send the first retry.
    pub(in crate::retry) fn sent_by(self: Pin<&mut Self>, service: S) {
        self.project().stage.set(Stage::Sent { service: Some(service) });
    }

    /// Creates the state with a first attempt that is not sent yet: a hook is to see it, or it is too late.
    pub(in crate::retry) fn of_first((head, rest): (H, T), ready_by: Option<Instant>) -> Pin<Box<Self>> {
        let made = Some((Box::new(head), rest));
        Self::at(Stage::Waiting { due: None, sent: None, made }, ready_by)
    }

    fn at(stage: Stage<S, R, H, T>, ready_by: Option<Instant>) -> Pin<Box<Self>> {
        Box::pin(Self {
            progress: None,
            held: None,
            last_error: None,
            refused: None,
            counted: Account::default(),
            tried: Tried::default(),
            trail: Trail::new(),
            ready_by,
            sleep: None,
            stage,
        })
    }

    /// Holds the start of the call to its end.
    pub(in crate::retry) fn count(self: Pin<&mut Self>, start: Account) {
        *self.project().counted = start;
    }
}

impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

/// The terms of a new call, from a look at its request.
pub(super) struct CallStart {
    pub(in crate::retry) context: CallContext,
    /// `true` if the request is to be saved.
    pub(in crate::retry) keeps: bool,
    /// `true` if the request needs an idempotency key.
    needs_key: bool,
    /// The deadline, if the request does not contain it yet.
    deadline: Option<Deadline>,
    pub(in crate::retry) marker: Option<NestedMarker>,
    /// `true` if the request has fields that its protocol sets itself.
    strip: bool,
}

impl CallStart {
    /// Creates the terms of a call of `request`.
    pub(super) fn new<K, Req, D, B>(
        settings: &Settings<K, D, B>,
        of_handle: Option<&CallOptions>,
        deadline: Option<Deadline>,
        request: &Req,
    ) -> Self
    where
        K: Replay<Req>,
    {
        let view = K::view(request);
        let mut terms = settings.protocol.terms(view);
        if let Some(deadline) = deadline {
            terms.deadline = Some(terms.deadline.map_or(deadline, |own| own.min(deadline)));
        }
        let (existing_deadline, strip) = (terms.existing_deadline, terms.strip);
        let mut context = CallContext::new(settings, terms, of_handle);
        context.forbidden = context.forbidden.or_else(|| settings.protocol.cannot_save(request));
        let replaces = context.forbidden.is_none() && settings.protocol.replaces();
        let keeps = replaces || context.keeps(&settings.limits);
        let needs_key = keeps && settings.protocol.needs_key(view);
        context.keyed = needs_key;
        let deadline = context.deadline.map(Deadline::at).filter(|own| Some(*own) != existing_deadline);
        let nested = keeps && settings.nested && !view.contains(&http::header::UPGRADE);
        let marker = nested.then(NestedMarker::default);
        Self { context, keeps, needs_key, deadline, marker, strip }
    }

    /// Returns `true` if the deadline has passed already.
    pub(super) fn is_too_late(&self) -> bool {
        self.context.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Returns the additions to the request.
    #[inline]
    pub(super) fn added(&self) -> Added<'_> {
        Added {
            key: self.needs_key,
            once: self.context.is_once(),
            deadline: self.deadline,
            marker: self.marker.as_ref(),
            strip: self.strip,
        }
    }

    /// Returns `true` if nothing depends on the outcome of a call that is not saved. Then the outcome is passed
    /// on.
    #[inline]
    pub(super) fn is_noop<K: Protocol, D: Schedule, B: Budget>(&self, settings: &Settings<K, D, B>) -> bool {
        settings.hook.is_none()
            && settings.observer.is_none()
            && settings.budget.is_full()
            && !settings.counts_calls
            && self.context.is_stateless(&settings.schedule)
            && self.context.options.as_ref().is_none_or(|options| options.slot().is_none())
    }
}

/// The beginning of a call.
impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// Starts the call's time, because something is not ready at once. A call that is ready at once reads no
    /// clock.
    #[inline]
    pub(super) fn takes_time(&mut self, now: impl FnOnce() -> Instant) {
        if self.saved && self.context.started.is_none() {
            self.context.started = Some(now());
        }
    }

    /// Returns the destination of the call.
    fn destination(&self) -> Cow<'_, str> {
        let protocol = &self.shared.policy.settings.protocol;
        destination(protocol, self.kept.as_ref(), self.target.as_deref())
    }

    /// Records that an attempt is sent, for schedules that are shared by many calls.
    #[inline]
    pub(super) fn on_send(&mut self) {
        self.sent_at = self.context.on_send(&self.shared.policy.settings.schedule);
    }
}

/// Returns the destination of a call, from its saved request or as it was recorded.
fn destination<'a, Req, K: Replay<Req>>(
    protocol: &K,
    kept: Option<&'a K::Saved>,
    target: Option<&'a str>,
) -> Cow<'a, str> {
    match kept {
        Some(kept) => protocol.destination_of(kept.view()),
        None => target.unwrap_or_default().into(),
    }
}
