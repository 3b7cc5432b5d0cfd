//! The service that the retry layer creates, and the plan for each of its calls.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use reattempt_core::{Budget, Schedule, SentAt, StopReason};
use tower_service::Service;

use super::ResponseFuture;
use super::call::{RetryDriver, RetryState, is_noop, start};
use crate::accessors::inner_accessors;
use crate::call::clock::Instant;
use crate::call::context::CallContext;
use crate::call::deadline::Deadline;
use crate::call::frame::{Frame, Tried};
use crate::call::layer_terms::LayerTerms;
use crate::call::options::CallOptions;
use crate::call::settings::Settings;
use crate::error_mode::ErrorMode;
use crate::policy::RetryPolicy;
use crate::protocol::{Added, ClassifyOutcome, Origin, Protocol, Replay, Saved};
use crate::send::send_method;
use crate::shared::Shared;

/// A client whose calls are retried, created by [`RetryLayer`](crate::RetryLayer).
///
/// The client has the inner service's response and error types. With [`attempt_timeout`](RetryPolicy::attempt_timeout)
/// or [`boxed_errors`](RetryPolicy::boxed_errors), its error is tower's `BoxError`. Cloning it clones the inner
/// service; everything else is shared.
///
/// ```no_run
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::RetryLayer;
/// use tower::ServiceBuilder;
///
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::http())
///     .service(Client::builder(TokioExecutor::new()).build_http());
///
/// let request = Request::get("http://one.example/").body(Full::<Bytes>::default())?;
/// let response = client.send(request).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Retry<S, Policy = RetryPolicy> {
    #[doc(hidden)]
    pub inner: S,
    #[doc(hidden)]
    pub shared: Arc<Shared<S, Policy>>,
    options: Option<CallOptions>,
}

impl<S: Clone, Policy> Retry<S, Policy> {
    /// Adds retries with this policy to `inner`.
    pub fn new(policy: Policy, inner: S) -> Self {
        let shared = Arc::new(Shared::new(policy, inner.clone()));
        Self { inner, shared, options: None }
    }
}

impl<S: Clone, Policy: Clone> Retry<S, Policy> {
    /// Returns a handle to this client with options for all its calls. A request's own options take precedence.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self.clone() }
    }
}

impl<S, Policy> Retry<S, Policy> {
    /// Returns the policy, for example to read its budget.
    pub fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    inner_accessors!(S, inner);
    send_method!(
        impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<S, Policy, Req>
    );
}

impl<S, Req, Attempt, P, Backoff, B, Mode> Service<Req> for Retry<S, RetryPolicy<P, Backoff, B, Mode>>
where
    S: Service<Attempt> + Clone,
    P: Replay<Req, Attempt = Attempt> + Origin<Attempt, Request = Req> + ClassifyOutcome<S::Response>,
    Backoff: Schedule,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Response = P::Answer;
    type Error = Mode::Error;
    type Future = ResponseFuture<S, Req, P, Backoff, B, Mode>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Mode::own)
    }

    /// Saves the request and sends the first attempt through the inner service, which must be ready.
    ///
    /// If the policy has a [`before_attempt`](RetryPolicy::before_attempt) hook, or the call is not sent, a clone
    /// replaces the instance that is ready. This releases any permit that it holds.
    fn call(&mut self, request: Req) -> Self::Future {
        self.call_within(None, request)
    }
}

/// A way to carry out a call, chosen from its request.
enum Plan {
    /// Nothing is saved and nothing depends on the outcome, which is returned unchanged.
    Forward,
    /// The request is saved. Nothing else is needed before the first attempt.
    Plain,
    /// Options, a hook, a deadline or a seed are applied before the first attempt.
    Full,
}

impl Plan {
    // Inlined, because a separate function would save and restore registers in every call.
    #[inline(always)]
    fn of<P, Req, Backoff, B, Mode, E>(
        settings: &Settings<P, Backoff, B>,
        of_handle: Option<&CallOptions>,
        total_time: Option<Duration>,
        request: &Req,
    ) -> Self
    where
        P: Replay<Req>,
        Backoff: Schedule,
        B: Budget,
        Mode: ErrorMode<E>,
    {
        if total_time == Some(Duration::ZERO) || Frame::deadline().is_some() {
            return Self::Full;
        }
        let protocol = &settings.protocol;
        let never = match of_handle {
            None => settings.limits.max_attempts <= 1 && !protocol.replaces(),
            Some(options) if options.only_forbids() => true,
            Some(_) => return Self::Full,
        };
        if !settings.plain {
            return Self::Full;
        }
        let view = P::view(request);
        let cannot_save = protocol.cannot_save(request);
        let plain = protocol.has_no_terms(view) && cannot_save.is_none();
        if plain && !never {
            return Self::Plain;
        }
        let never = plain
            || match view.extension() {
                Some(options) => protocol.only_forbids(options),
                None => cannot_save == Some(StopReason::BodyNotKept),
            };
        let forwards = never && total_time.is_none() && !Mode::INTERRUPTS && settings.learns_nothing();
        if forwards { Self::Forward } else { Self::Full }
    }
}

impl<S, P, Backoff, B, Mode> Retry<S, RetryPolicy<P, Backoff, B, Mode>>
where
    P: Protocol,
    Backoff: Schedule,
    B: Budget,
{
    /// Starts a call with these options through the inner service, which must be ready.
    pub(crate) fn call_with<Req>(
        &mut self,
        options: CallOptions,
        request: Req,
    ) -> ResponseFuture<S, Req, P, Backoff, B, Mode>
    where
        S: Service<P::Attempt> + Clone,
        P: Replay<Req> + ClassifyOutcome<S::Response>,
        Mode: ErrorMode<S::Error>,
    {
        self.options = Some(options);
        self.call_in_full(None, request)
    }

    /// Starts a call that ends after the total time or at its own deadline, whichever is earlier.
    // Each function that takes a large request by value copies it. Therefore, this one is inlined, the plan is chosen
    // by reference, and the plain plan is carried out here.
    #[doc(hidden)]
    #[inline(always)]
    pub fn call_within<Req>(
        &mut self,
        total_time: Option<Duration>,
        request: Req,
    ) -> ResponseFuture<S, Req, P, Backoff, B, Mode>
    where
        S: Service<P::Attempt> + Clone,
        P: Replay<Req> + ClassifyOutcome<S::Response>,
        Mode: ErrorMode<S::Error>,
    {
        let settings = &*self.shared.policy.settings;
        let protocol = &settings.protocol;
        match Plan::of::<P, Req, Backoff, B, Mode, S::Error>(settings, self.options.as_ref(), total_time, &request) {
            Plan::Forward => {
                let mut source = None;
                let attempt = protocol.forward_watched(request, Added::default(), &mut source);
                let _frame = Frame::passing(None, None, LayerTerms::of(None, &source));
                ResponseFuture::new(Some(self.inner.call(attempt)), None)
            }
            Plan::Plain => {
                let now = total_time.map(|_| Instant::now());
                let deadline = now.zip(total_time).map(|(now, total)| now.later(total));
                let added = Added { deadline: deadline.map(Deadline::at), implied: true, ..Added::default() };
                let mut saved = None;
                let attempt = protocol.save(request, added, &mut saved);
                let sent_at = settings.strategy.on_send();
                let source = saved.as_ref().and_then(Saved::watch_source);
                let (sent, tried);
                {
                    let mut frame = Frame::first(deadline, now, LayerTerms::of(None, &source));
                    sent = self.inner.call(attempt);
                    tried = frame.close();
                }
                let shared = Arc::clone(&self.shared);
                let call = RetryDriver {
                    shared,
                    saved,
                    target: None,
                    is_saved: true,
                    context: CallContext::until(deadline),
                    number: 1,
                    sent_at,
                    tried,
                    marker: None,
                    retrying: RetryState::of_sent(source),
                };
                ResponseFuture::new(Some(sent), Some(call))
            }
            Plan::Full => self.call_in_full(total_time, request),
        }
    }

    /// Carries out [`Plan::Full`]. The call ends after the total time or at its own deadline, whichever is earlier.
    fn call_in_full<Req>(
        &mut self,
        total_time: Option<Duration>,
        request: Req,
    ) -> ResponseFuture<S, Req, P, Backoff, B, Mode>
    where
        S: Service<P::Attempt> + Clone,
        P: Replay<Req> + ClassifyOutcome<S::Response>,
        Mode: ErrorMode<S::Error>,
    {
        let settings = &*self.shared.policy.settings;
        let protocol = &settings.protocol;
        let mut start = start(settings, self.options.as_ref(), total_time, &request);
        let cut_short = Mode::INTERRUPTS || (Mode::ANSWERS && start.context.deadline.is_some());
        if !cut_short && !start.saves && is_noop(&start, settings) {
            let mut source = None;
            let attempt = protocol.forward_watched(request, start.added(), &mut source);
            let _frame = Frame::passing(start.context.deadline, start.now, LayerTerms::of(None, &source));
            return ResponseFuture::new(Some(self.inner.call(attempt)), None);
        }
        let (mut saved, mut target, mut source) = (None, None, None);
        let late = Mode::ENDS_LATE && start.is_too_late();
        let attempt = if start.saves {
            protocol.save(request, start.added(), &mut saved)
        } else {
            if settings.observer.is_some() || !settings.budget.is_full() {
                target = Some(protocol.destination_of(P::view(&request)).into());
            }
            protocol.forward_watched(request, start.added(), &mut source)
        };
        let source = source.or_else(|| saved.as_ref().and_then(Saved::watch_source));
        let shared = Arc::clone(&self.shared);
        let (sent_at, (attempt, tried), retrying) = if late || settings.hook.is_some() {
            // Releases the permit of the instance that is ready. A hook may need it, and a call that is too late is not
            // sent (DL-3).
            self.inner = self.inner.clone();
            if !late {
                start.context.started = Some(Instant::now());
            }
            let mut retrying = RetryState::of_first(protocol.split(attempt), start.context.deadline);
            retrying.as_mut().watch(source);
            (SentAt::default(), (None, Tried::Nowhere), Some(retrying))
        } else {
            let sent_at = start.context.on_send(&settings.strategy);
            let limit = if Mode::INTERRUPTS { settings.attempt_limit(start.context.options.as_ref()) } else { None };
            let (sent, tried);
            {
                let mut frame = Frame::first(start.context.deadline, start.now, LayerTerms::of(limit, &source));
                sent = self.inner.call(attempt);
                tried = frame.close();
            }
            let clones = settings.clone_per_call && start.saves;
            let mut retrying = RetryState::of_sent(source);
            if clones {
                let retrying = retrying.get_or_insert_with(RetryState::new).as_mut();
                retrying.sent_by(self.inner.clone());
            }
            (sent_at, (Some(sent), tried), retrying)
        };
        let call = RetryDriver {
            shared,
            saved,
            target,
            is_saved: start.saves,
            context: start.context,
            number: 1,
            sent_at,
            tried,
            marker: start.marker,
            retrying,
        };
        ResponseFuture::new(attempt, Some(call))
    }

    /// Releases the reservation of the instance that is ready, such as a permit or a place in a queue.
    pub(crate) fn release(&mut self)
    where
        S: Clone,
    {
        self.inner = self.inner.clone();
    }
}

impl<S: fmt::Debug, Policy: fmt::Debug> fmt::Debug for Retry<S, Policy> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .field("policy", &self.shared.policy)
            .field("options", &self.options)
            .finish()
    }
}
