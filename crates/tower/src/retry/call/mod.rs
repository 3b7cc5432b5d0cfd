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
use reattempt_core::{Admission, Budget, Schedule};
use tokio::time::Instant;
use tower_service::Service;

use super::course::Course;
use super::service::Shared;
use super::{Progress, Setting};
use crate::error_mode::ErrorMode;
use crate::policy::Settings;
use crate::protocol::{Added, Carry, Judge, NestedMarker, Protocol};
use crate::{Attempting, CallOptions, Deadline, RefusedResponse, RetryPolicy};

/// A call.
pub(super) struct Call<S, Req, K, D, B, M>
where
    K: Carry<Req> + Judge<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    shared: SharedBy<S, K, D, B, M>,
    kept: Option<K::Kept>,
    /// Whom a request is for of which nothing is kept, where somebody wants to know.
    target: Option<Box<str>>,
    setting: Setting,
    /// Whether the request was kept at all.
    carried: bool,
    /// The number of the attempt under way, from 1.
    number: u32,
    admission: Admission,
    /// What this layer leaves in the request for inner ones.
    marker: Option<NestedMarker>,
    retrying: Option<BoxedRetrying<S, Req, K, D, M>>,
}

/// What a call shares with all others of its client.
pub(super) type SharedBy<S, K, D, B, M> = Arc<Shared<S, RetryPolicy<K, D, B, M>>>;

/// The call is over, or goes on with `N`.
type Onwards<T, E, N> = ControlFlow<Result<T, E>, N>;

type BoxedRetrying<S, Req, K, D, M> = Pin<
    Box<
        Retrying<
            S,
            <K as Judge<<S as Service<<K as Carry<Req>>::Attempt>>::Response>>::Discard,
            <K as crate::Protocol>::Head,
            <K as Carry<Req>>::Rest,
            <M as ErrorMode<<S as Service<<K as Carry<Req>>::Attempt>>::Error>>::Error,
            <D as Schedule>::Delays,
        >,
    >,
>;

pin_project! {
    /// All that only retries need.
    struct Retrying<S, R, H, T, E, D> {
        progress: Option<Progress<D>>,
        // The error that the last attempt ended with, in case no further one can be made.
        last_error: Option<E>,
        // The head of the response that was refused last, where a hook or an error may want it.
        refused: Option<RefusedResponse>,
        // The attempt without its head, while a hook has that.
        rest: Option<T>,
        #[pin]
        course: Course<S, R, H>,
    }
}

impl<S, R, H: Send + 'static, T, E, D> Retrying<S, R, H, T, E, D> {
    fn new() -> Pin<Box<Self>> {
        Box::pin(Self {
            progress: None,
            last_error: None,
            refused: None,
            rest: None,
            course: Course::new(),
        })
    }

    /// Gives the attempt's head to the hook, and has `service` readied for the attempt.
    fn prepare<K, Req, P, B>(
        self: Pin<&mut Self>,
        settings: &Settings<K, P, B>,
        service: S,
        attempt: K::Attempt,
        attempting: Attempting,
    ) where
        K: Carry<Req, Rest = T> + Protocol<Head = H>,
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
        *this.rest = Some(rest);
        this.course.prepare(service, Some(preparing));
    }
}

impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    K: Carry<Req> + Judge<S::Response>,
    S: Service<K::Attempt>,
    D: Schedule,
    M: ErrorMode<S::Error>,
{
    pub(super) fn number(&self) -> u32 {
        self.number
    }
}

/// The beginning of a call.
impl<S, Req, K, D, B, M> Call<S, Req, K, D, B, M>
where
    S: Service<K::Attempt> + Clone,
    K: Carry<Req> + Judge<S::Response>,
    D: Schedule,
    B: Budget,
    M: ErrorMode<S::Error>,
{
    /// Begins with `request`: keeps what it needs of it and sends the first attempt by the readied
    /// service `inner`, unless a hook has to see it first.
    pub(super) fn begin(
        inner: &mut S,
        shared: &SharedBy<S, K, D, B, M>,
        of_handle: Option<&CallOptions>,
        request: Req,
    ) -> (Self, Option<S::Future>) {
        let settings = &*shared.policy.settings;
        let protocol = &settings.protocol;
        let wishes = protocol.wishes(&request);
        let told = wishes.told;
        let mut setting = Setting::new(settings, wishes, of_handle);
        let found = setting.keeps(&settings.limits, || protocol.admit(&request));
        let marker = (found.is_some() && settings.nested).then(NestedMarker::default);
        let added = Added {
            key: found.is_some_and(|found| found.needs_key),
            deadline: setting.deadline.map(Deadline::at).filter(|own| Some(*own) != told),
            marker: marker.as_ref(),
        };
        let (mut kept, mut target, mut retrying) = (None, None, None);
        let attempt = if found.is_some() {
            protocol.keep(request, added, &mut kept)
        } else {
            if settings.observer.is_some() || !settings.budget.is_full() {
                target = Some(protocol.target(&request).into());
            }
            protocol.pass(request, added)
        };
        let mut admission = Admission::default();
        let attempt = if settings.hook.is_none() {
            admission = setting.admit(&settings.schedule);
            Some(inner.call(attempt))
        } else {
            setting.started = Some(Instant::now());
            // The attempt waits for its hook, and with it the very instance that was readied for it.
            let spare = inner.clone();
            let readied = std::mem::replace(inner, spare);
            retrying = Some(Self::prepared(settings, setting.deadline, readied, attempt));
            None
        };
        let call = Self {
            shared: Arc::clone(shared),
            kept,
            target,
            setting,
            carried: found.is_some(),
            number: 1,
            admission,
            marker,
            retrying,
        };
        (call, attempt)
    }

    /// Something is not ready at once: from here on the call's time counts. A call that needs none
    /// looks at no clock.
    #[inline]
    pub(super) fn takes_time(&mut self) {
        if self.carried && self.setting.started.is_none() {
            self.setting.started = Some(Instant::now());
        }
    }

    /// Whom the call is for, as long as anything of it is at hand.
    fn destination(&self) -> Cow<'_, str> {
        match (&self.kept, &self.target) {
            (Some(kept), _) => self.shared.policy.settings.protocol.destination(kept),
            (None, target) => target.as_deref().unwrap_or_default().into(),
        }
    }

    /// Notes the moment an attempt is sent, for schedules that are shared by many calls.
    #[inline]
    fn admit(&mut self) {
        self.admission = self.setting.admit(&self.shared.policy.settings.schedule);
    }

    /// The first attempt on its way to the hook.
    fn prepared(
        settings: &Settings<K, D, B>,
        ready_by: Option<Instant>,
        service: S,
        attempt: K::Attempt,
    ) -> BoxedRetrying<S, Req, K, D, M> {
        let mut retrying = Retrying::new();
        let attempting = Attempting { number: 1, cause: None, refused: None };
        retrying.as_mut().prepare(settings, service, attempt, attempting);
        retrying.as_mut().project().course.bound(ready_by);
        retrying
    }
}
