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
use reattempt_core::{Admission, Budget, Failure, Schedule};
use tokio::time::Instant;
use tower_service::Service;

use super::course::Course;
use super::service::Shared;
use super::{Progress, Setting};
use crate::error_mode::ErrorMode;
use crate::protocol::{Carry, Judge, NestedMarker};
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
    /// When the attempt was first found not to be ready at once, where a limit needs that.
    attempt_started: Option<Instant>,
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

impl<S, R, H, T, E, D> Retrying<S, R, H, T, E, D> {
    fn new() -> Pin<Box<Self>> {
        Box::pin(Self {
            progress: None,
            last_error: None,
            refused: None,
            rest: None,
            course: Course::new(),
        })
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
    /// The call of `request`, and its first attempt.
    #[inline]
    pub(super) fn new(
        shared: &SharedBy<S, K, D, B, M>,
        of_handle: Option<&CallOptions>,
        mut request: Req,
    ) -> (Self, K::Attempt) {
        let settings = &*shared.policy.settings;
        let admitted = settings.protocol.admit(&mut request);
        let told = admitted.deadline.map(Deadline::instant);
        let (setting, carried) = Setting::new(settings, admitted, of_handle);
        if let Some(deadline) = setting.deadline.filter(|_| setting.deadline != told) {
            settings.protocol.hand_on(&mut request, Deadline::at(deadline));
        }
        let (mut marker, mut kept, mut target) = (None, None, None);
        let attempt = if carried {
            marker = settings.nested.then(NestedMarker::default);
            let (attempt, whole) = settings.protocol.keep(request, marker.as_ref());
            kept = Some(whole);
            attempt
        } else {
            if settings.observer.is_some() || !settings.budget.is_full() {
                target = Some(settings.protocol.target(&request).into());
            }
            settings.protocol.pass(request)
        };
        let call = Self {
            shared: Arc::clone(shared),
            kept,
            target,
            setting,
            carried,
            number: 1,
            admission: Admission::default(),
            marker,
            attempt_started: None,
            retrying: None,
        };
        (call, attempt)
    }

    /// Sends the first attempt by the readied service `inner`, unless a hook has to see it first.
    #[inline]
    pub(super) fn first_attempt(
        &mut self,
        inner: &mut S,
        attempt: K::Attempt,
    ) -> Option<S::Future> {
        if self.shared.policy.settings.hook.is_none() {
            self.admit();
            return Some(inner.call(attempt));
        }
        // The attempt waits for its hook, and with it the very instance that was readied for it.
        let spare = inner.clone();
        let readied = std::mem::replace(inner, spare);
        self.prepare(readied, attempt, None);
        if let Some(retrying) = &mut self.retrying {
            retrying.as_mut().project().course.bound(self.setting.deadline);
        }
        None
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

    /// Gives the attempt's head to the hook, and has `service` readied for the attempt.
    fn prepare(&mut self, service: S, attempt: K::Attempt, cause: Option<Failure>) {
        let settings = &self.shared.policy.settings;
        let (mut head, rest) = settings.protocol.split(attempt);
        let hook = settings.hook.clone();
        let retrying = self.retrying.get_or_insert_with(Retrying::new).as_mut().project();
        let refused = retrying.refused.clone();
        let attempting = Attempting { number: self.number, cause, refused };
        let preparing = Box::pin(async move {
            if let Some(hook) = hook {
                hook.before_attempt(&mut head, attempting).await;
            }
            head
        });
        *retrying.rest = Some(rest);
        retrying.course.prepare(service, Some(preparing));
    }
}
