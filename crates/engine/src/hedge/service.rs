//! The service that the hedge layer creates, and the start of each of its calls.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Budget, StopReason};
use tower_service::Service;

use super::call::{HedgeDriver, HedgeStart, timed_out};
use super::{HedgePolicy, ResponseFuture};
use crate::accessors::inner_accessors;
use crate::call::clock::Instant;
use crate::call::frame::Frame;
use crate::call::layer_terms::LayerTerms;
use crate::call::observe::{Event, notify};
use crate::call::options::CallOptions;
use crate::call::report::Report;
use crate::call::timed_out::TimeLimit;
use crate::error_mode::ErrorMode;
use crate::protocol::{AnswerOf, CallStart, CallTypes, ClassifyOutcome, Origin, Protocol, Replay, Saved, Types};
use crate::send::send_method;
use crate::shared::Shared;

/// A client whose calls are hedged, created by [`HedgeLayer`](crate::hedge::HedgeLayer).
///
/// The client has the inner service's response and error types, unless the policy has boxed errors. Cloning it clones
/// the inner service; everything else is shared. Each hedge uses a new clone of the inner service, and is sent once the
/// clone is ready.
#[derive(Clone)]
pub struct Hedge<S, Policy = HedgePolicy> {
    inner: S,
    shared: Arc<Shared<S, Policy>>,
    options: Option<CallOptions>,
}

impl<S: Clone, Policy> Hedge<S, Policy> {
    /// Adds hedging with this policy to `inner`.
    pub fn new(policy: Policy, inner: S) -> Self {
        let shared = Shared::new(policy, inner.clone());
        Self { inner, shared: Arc::new(shared), options: None }
    }
}

impl<S: Clone, Policy: Clone> Hedge<S, Policy> {
    /// Returns a handle to this client with options for all its calls. A request's own options take precedence.
    ///
    /// Retry options also apply to hedges: [`repeatable`](CallOptions::repeatable) allows or forbids hedging for any
    /// request. [`CallOptions`] lists the options that have no effect in this layer.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self.clone() }
    }
}

impl<S, Policy> Hedge<S, Policy> {
    inner_accessors!(S, inner);
    send_method!(
        impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<S, Policy, Req>
    );

    /// Returns the policy, for example to read its budget or its delay.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }
}

impl<S, Req, Attempt, P, B, Mode> Service<Req> for Hedge<S, HedgePolicy<P, B, Mode>>
where
    S: Service<Attempt> + Clone,
    P: Replay<Req, Attempt = Attempt> + Origin<Attempt, Request = Req> + ClassifyOutcome<S::Response>,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Answer;
    type Error = Mode::Error;
    type Future = ResponseFuture<S, Req, P, B, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Mode::own)
    }

    /// Saves the request and sends the first attempt through the inner service, which must be ready.
    fn call(&mut self, request: Req) -> Self::Future {
        begin(&mut self.inner, &self.shared, (self.options.as_ref(), None), request)
    }
}

impl<S, P: Protocol, B: Budget, Mode> Hedge<S, HedgePolicy<P, B, Mode>> {
    /// Starts a call that ends after the total time or at its own deadline, whichever is earlier.
    #[doc(hidden)]
    pub fn call_within<Req>(&mut self, total_time: Duration, request: Req) -> ResponseFuture<S, Req, P, B, Mode>
    where
        S: Service<P::Attempt> + Clone,
        P: Replay<Req> + ClassifyOutcome<S::Response>,
        Mode: ErrorMode<S::Error>,
    {
        begin(&mut self.inner, &self.shared, (self.options.as_ref(), Some(total_time)), request)
    }
}

/// Starts a call through a service that is ready, with its handle's options and a total time.
pub(crate) fn begin<S, Req, P, B, Mode>(
    inner: &mut S,
    shared: &Arc<Shared<S, HedgePolicy<P, B, Mode>>>,
    (options, total_time): (Option<&CallOptions>, Option<Duration>),
    request: Req,
) -> ResponseFuture<S, Req, P, B, Mode>
where
    S: Service<P::Attempt> + Clone,
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    let settings = &*shared.policy.settings;
    let opening = HedgeStart::new(settings, options, total_time, &request);
    // A budget that is not full also records the success of a call that may not be hedged.
    let earns = !opening.start.saves && settings.protocol.credits_every_call() && !settings.budget.is_full();
    if !earns && opening.is_noop(Mode::INTERRUPTS || Mode::ANSWERS) {
        let mut source = None;
        let attempt = settings.protocol.forward_watched(request, opening.start.added(), &mut source);
        let start = &opening.start;
        let _frame = Frame::passing(start.context.deadline, start.now, LayerTerms::of(None, &source));
        return ResponseFuture::passing(inner.call(attempt));
    }
    if let Some(late) = too_late::<Types<S, Req, P, (), B, Mode>>(&settings.protocol, &opening.start) {
        // Drops the instance that is ready, and any permit it holds.
        let spare = inner.clone();
        *inner = spare;
        if let Some(slot) = opening.start.context.slot() {
            slot.put(Report::of_nothing(StopReason::DeadlineExceeded));
        }
        if let (Some(observer), true) = (&settings.observer, opening.hedges()) {
            let reason = StopReason::DeadlineExceeded;
            let event = Event::GaveUp { attempts: 0, reason };
            notify(&**observer, &settings.protocol.destination_of(P::view(&request)), &event);
        }
        return ResponseFuture::late(late);
    }
    let (mut saved, mut target, mut source) = (None, None, None);
    let attempt = if opening.start.saves {
        settings.protocol.save(request, opening.start.added(), &mut saved)
    } else {
        if earns {
            target = Some(settings.protocol.destination_of(P::view(&request)).into());
        }
        settings.protocol.forward_watched(request, opening.start.added(), &mut source)
    };
    let source = source.or_else(|| saved.as_ref().and_then(Saved::watch_source));
    let (deadline, now) = (opening.start.context.deadline, opening.start.now);
    let hedges = opening.hedges();
    let mut call = HedgeDriver::new(Arc::clone(shared), opening, saved, target);
    // An outer retry layer must know the endpoint of its attempt, because another tier may not know a key. Therefore,
    // only a call with hedges opens its own frame.
    let open = if hedges { Frame::first } else { Frame::outermost };
    let mut frame = open(deadline, now, LayerTerms::of(None, &source));
    let attempt = inner.call(attempt);
    call.on_first(frame.close());
    ResponseFuture::new(call, attempt)
}

/// Returns the result of a call that is not sent because its deadline has passed. Returns `None` if there is
/// time left, or if there is no error or response to return.
// DL-3
fn too_late<T: CallTypes>(protocol: &T::Protocol, start: &CallStart) -> Option<AnswerOf<T>> {
    if !T::Mode::ENDS_LATE || !start.is_too_late() {
        return None;
    }
    timed_out::<T>(protocol, TimeLimit::Deadline, Instant::now(), None)
}

impl<S: fmt::Debug, Policy: fmt::Debug> fmt::Debug for Hedge<S, Policy> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hedge")
            .field("inner", &self.inner)
            .field("policy", &self.shared.policy)
            .field("options", &self.options)
            .finish()
    }
}
