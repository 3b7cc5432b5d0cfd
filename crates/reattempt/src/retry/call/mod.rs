//! One call, from its request to its outcome.
//!
//! While the first attempt runs it holds what was kept of the request and nothing else. The first
//! failure makes one box with all that only retries need: the state of the decisions and the course
//! between attempts.

mod between;
mod ended;
mod judged;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;

use pin_project_lite::pin_project;
use reattempt_core::{Budget, Permit, Schedule, SentAt};
use tokio::time::Instant;
use tower_service::Service;

use super::course::{Course, Hooked};
use super::service::Shared;
use super::{Progress, Setting};
use crate::error_mode::ErrorMode;
use crate::protocol::{Added, ClassifyOutcome, NestedMarker, Protocol, Replay};
use crate::retry::policy::Settings;
use crate::{AttemptContext, CallOptions, Deadline, RefusedResponse, RetryPolicy};

/// A call.
pub(super) struct Call<S, Req, K, D, B, M>
where
    K: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    pub(in crate::retry) shared: SharedBy<S, K, D, B, M>,
    pub(in crate::retry) kept: Option<K::Saved>,
    /// Whom a request is for of which nothing is kept, where somebody wants to know.
    pub(in crate::retry) target: Option<Box<str>>,
    pub(in crate::retry) setting: Setting,
    /// Whether the request was kept at all.
    pub(in crate::retry) carried: bool,
    /// The number of the attempt under way, from 1.
    pub(in crate::retry) number: u32,
    pub(in crate::retry) sent_at: SentAt,
    /// What this layer leaves in the request for inner ones.
    pub(in crate::retry) marker: Option<NestedMarker>,
    pub(in crate::retry) retrying: Option<BoxedRetrying<S, Req, K, D, M>>,
}

/// What a call shares with all others of its client.
pub(super) type SharedBy<S, K, D, B, M> = Arc<Shared<S, RetryPolicy<K, D, B, M>>>;

/// The call is over, or goes on with `N`.
type Onwards<T, E, N> = ControlFlow<Result<T, E>, N>;

pub(super) type BoxedRetrying<S, Req, K, D, M> = Pin<
    Box<
        Retrying<
            S,
            <K as ClassifyOutcome<<S as Service<<K as Replay<Req>>::Attempt>>::Response>>::Drain,
            <K as crate::Protocol>::Head,
            <K as Replay<Req>>::Rest,
            <M as ErrorMode<<S as Service<<K as Replay<Req>>::Attempt>>::Error>>::Error,
            <D as Schedule>::Delays,
        >,
    >,
>;

pin_project! {
    /// All that only retries need.
    pub(in crate::retry) struct Retrying<S, R, H, T, E, D> {
        progress: Option<Progress<D>>,
        // The error that the last attempt ended with, in case no further one can be made.
        last_error: Option<E>,
        // The head of the response that was refused last, where a hook or an error may want it.
        refused: Option<RefusedResponse>,
        // The permit of the call itself, from a budget that counts calls.
        counted: Option<Permit>,
        #[pin]
        course: Course<S, R, H, T>,
    }
}

impl<S, R, H: Send + 'static, T, E, D> Retrying<S, R, H, T, E, D> {
    pub(in crate::retry) fn new() -> Pin<Box<Self>> {
        let course = Course::new();
        Box::pin(Self { progress: None, last_error: None, refused: None, counted: None, course })
    }

    /// With the service that has just sent an attempt and is to send all that follow.
    pub(in crate::retry) fn sent_by(service: S) -> Pin<Box<Self>> {
        let mut retrying = Self::new();
        retrying.as_mut().project().course.sent(service);
        retrying
    }

    /// Holds the permit of the call to its end.
    pub(in crate::retry) fn count(self: Pin<&mut Self>, permit: Permit) {
        *self.project().counted = Some(permit);
    }

    /// Gives the attempt's head to the hook, and has `service` readied for the attempt.
    fn prepare<K, Req, P, B>(
        self: Pin<&mut Self>,
        settings: &Settings<K, P, B>,
        service: S,
        attempt: K::Attempt,
        attempting: AttemptContext,
    ) where
        K: Replay<Req, Rest = T> + Protocol<Head = H>,
    {
        let this = self.project();
        let (mut head, rest) = settings.protocol.split(attempt);
        let hook = settings.hook.clone();
        let preparing = Box::pin(async move {
            if let Some(hook) = hook {
                hook.before_attempt(&mut head, attempting).await;
            }
            head
        });
        this.course.prepare(service, Some(Hooked::new(preparing, rest)));
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

/// What a look at a new request has told.
pub(super) struct Opening {
    pub(in crate::retry) setting: Setting,
    /// Whether anything of the request is to be kept.
    pub(in crate::retry) keeps: bool,
    /// Whether it has to be given an idempotency key.
    needs_key: bool,
    /// The deadline that the request does not carry yet.
    deadline: Option<Deadline>,
    pub(in crate::retry) marker: Option<NestedMarker>,
    /// Whether it has fields that its protocol sets itself.
    strip: bool,
}

impl Opening {
    /// Looks at `request`.
    pub(super) fn new<K, Req, D, B>(
        settings: &Settings<K, D, B>,
        of_handle: Option<&CallOptions>,
        request: &Req,
    ) -> Self
    where
        K: Replay<Req>,
    {
        let wishes = settings.protocol.wishes(request);
        let (told, strip) = (wishes.told, wishes.strip);
        let mut setting = Setting::new(settings, wishes, of_handle);
        setting.forbidden = setting.forbidden.or_else(|| settings.protocol.cannot_save(request));
        let replaces = setting.forbidden.is_none() && settings.protocol.replaces();
        let keeps = replaces || setting.keeps(&settings.limits);
        let needs_key = keeps && settings.protocol.needs_key(request);
        let deadline = setting.deadline.map(Deadline::at).filter(|own| Some(*own) != told);
        let nested = keeps && settings.nested && settings.protocol.may_change(request);
        let marker = nested.then(NestedMarker::default);
        Self { setting, keeps, needs_key, deadline, marker, strip }
    }

    /// Whether the deadline has passed already.
    pub(super) fn is_too_late(&self) -> bool {
        self.setting.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// What is to be added to the request.
    #[inline]
    pub(super) fn added(&self) -> Added<'_> {
        Added {
            key: self.needs_key,
            deadline: self.deadline,
            marker: self.marker.as_ref(),
            strip: self.strip,
        }
    }

    /// Whether nobody learns anything from the outcome of a call of which nothing is kept, so that it
    /// need only be handed on.
    #[inline]
    pub(super) fn is_noop<K: Protocol, D: Schedule, B: Budget>(
        &self,
        settings: &Settings<K, D, B>,
    ) -> bool {
        settings.hook.is_none()
            && settings.observer.is_none()
            && settings.budget.is_full()
            && !settings.counts_calls
            && self.setting.is_stateless(&settings.schedule)
            && self.setting.options.as_ref().is_none_or(|options| options.slot().is_none())
    }

    /// The first attempt goes to the hook, and `service` is readied for it.
    #[cold]
    pub(super) fn prepare<S, Req, K, D, B, M>(
        &mut self,
        settings: &Settings<K, D, B>,
        service: S,
        attempt: K::Attempt,
    ) -> BoxedRetrying<S, Req, K, D, M>
    where
        K: Replay<Req> + ClassifyOutcome<S::Response>,
        S: Service<K::Attempt>,
        D: Schedule,
        M: ErrorMode<S::Error>,
    {
        self.setting.started = Some(Instant::now());
        let mut retrying = Retrying::new();
        let attempting = AttemptContext { number: 1, cause: None, refused: None };
        retrying.as_mut().prepare(settings, service, attempt, attempting);
        retrying.as_mut().project().course.bound(self.setting.deadline);
        retrying
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
    /// Something is not ready at once: from `now` on the call's time counts. A call that needs none
    /// looks at no clock.
    #[inline]
    pub(super) fn takes_time(&mut self, now: impl FnOnce() -> Instant) {
        if self.carried && self.setting.started.is_none() {
            self.setting.started = Some(now());
        }
    }

    /// Whom the call is for.
    fn destination(&self) -> Cow<'_, str> {
        let protocol = &self.shared.policy.settings.protocol;
        destination(protocol, self.kept.as_ref(), self.target.as_deref())
    }

    /// Notes the moment an attempt is sent, for schedules that are shared by many calls.
    #[inline]
    pub(super) fn on_send(&mut self) {
        self.sent_at = self.setting.on_send(&self.shared.policy.settings.schedule);
    }
}

/// Whom a call is for, as long as anything of it is at hand.
fn destination<'a, Req, K: Replay<Req>>(
    protocol: &K,
    kept: Option<&'a K::Saved>,
    target: Option<&'a str>,
) -> Cow<'a, str> {
    match kept {
        Some(kept) => protocol.destination(kept),
        None => target.unwrap_or_default().into(),
    }
}
