//! The retry policy as a `tower::retry::Policy`, for tower's own `tower::retry::RetryLayer`.
//!
//! tower's `Retry` calls `clone_request` on the shared policy, and then clones the policy for the call. The state
//! of a call is therefore a field of the policy. A clone copies the context but starts with empty progress.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body::Body;
use pin_project_lite::pin_project;
use reattempt_control::RetryBudget;
use reattempt_core::{Budget, CallEnd, FailedAttempt, Schedule, SentAt, ServerHint, StopReason, Verdict};
use reattempt_replay::ReplayBody;
use reattempt_schedule_exponential::Exponential;
use sync_wrapper::SyncWrapper;
use tokio::time::Sleep;
use tower::BoxError;
use tower::retry::Policy;

use super::RetryPolicy;
use crate::call::clock::{Instant, sleep_until};
use crate::call::context::CallContext;
use crate::call::progress::{Progress, report_end};
use crate::call::request_view::RequestView;
use crate::error_mode::OwnError;
use crate::protocol::{AttemptNumber, ClassifyOutcome, Http, RequestProtocol, Saved, witness};

/// A [`RetryPolicy`] for tower's own `tower::retry::RetryLayer`, created with [`RetryPolicy::stock`].
///
/// The request bodies must be [`ReplayBody`](crate::ReplayBody)s. [`RetryLayer`](crate::RetryLayer) can do more.
/// Tower's `Retry` drops refused responses without draining them. Time limits do not interrupt attempts, hooks do not
/// run, and idempotency keys are not generated. Nested retry layers are not coordinated. A call whose body was not
/// saved has no report, no events, and no effect on the budget.
///
/// If the inner service follows redirects, create the bodies with [`noting_polls`](crate::ReplayBody::noting_polls) or
/// set [`redirects_below(true)`](Http::redirects_below). Otherwise, a POST with an in-memory body is repeated if the
/// connection for a later hop fails, because the layer cannot detect that an earlier hop was sent.
///
/// ```
/// use std::convert::Infallible;
///
/// use bytes::Bytes;
/// use http::{Request, Response};
/// use http_body_util::Full;
/// use reattempt::body::ReplayLimits;
/// use reattempt::{ReplayBody, RetryPolicy};
/// use tower::{ServiceBuilder, ServiceExt};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ServiceBuilder::new()
///     .map_request(|request: Request<_>| request.map(|body| ReplayBody::new(body, &ReplayLimits::default())))
///     .retry(RetryPolicy::http().max_attempts(4).stock())
///     .service_fn(async |_: Request<ReplayBody<Full<Bytes>>>| {
///         Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
///     });
/// let response = client.oneshot(Request::get("http://one.example/").body(Full::default())?).await?;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// ```
pub struct StockPolicy<Backoff = Exponential, B = RetryBudget>
where
    Backoff: Schedule,
{
    policy: RetryPolicy<Http, Backoff, B, OwnError>,
    call: StockCall<Backoff::Delays>,
}

impl<Backoff: Schedule, B> RetryPolicy<Http, Backoff, B, OwnError> {
    /// Converts this policy for tower's own `tower::retry::RetryLayer`.
    pub fn stock(self) -> StockPolicy<Backoff, B> {
        StockPolicy { policy: self, call: StockCall::default() }
    }
}

impl<Backoff: Schedule, B> StockPolicy<Backoff, B> {
    /// Returns the policy, for example to read its budget.
    pub fn policy(&self) -> &RetryPolicy<Http, Backoff, B, OwnError> {
        &self.policy
    }
}

impl<Backoff: Schedule, B> Clone for StockPolicy<Backoff, B> {
    fn clone(&self) -> Self {
        Self { policy: self.policy.clone(), call: self.call.clone() }
    }
}

impl<Backoff, B> fmt::Debug for StockPolicy<Backoff, B>
where
    Backoff: Schedule + fmt::Debug,
    B: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StockPolicy").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// The state of one call, stored in the call's clone of the policy.
struct StockCall<Backoff> {
    context: Option<CallContext>,
    number: u32,
    /// Wrapped because a policy must be `Sync`, whereas a schedule's delays need not be.
    progress: SyncWrapper<Option<Box<Progress<Backoff>>>>,
    sent_at: SentAt,
}

impl<Backoff> Default for StockCall<Backoff> {
    fn default() -> Self {
        Self { context: None, number: 1, progress: SyncWrapper::new(None), sent_at: SentAt::default() }
    }
}

impl<Backoff> Clone for StockCall<Backoff> {
    fn clone(&self) -> Self {
        Self { context: self.context.clone(), sent_at: self.sent_at, ..Self::default() }
    }
}

impl<ReqBody, Backoff, B, Response, E> Policy<Request<ReplayBody<ReqBody>>, Response, E> for StockPolicy<Backoff, B>
where
    ReqBody: Body<Data = Bytes, Error: Into<BoxError>>,
    Backoff: Schedule,
    B: Budget,
    Http: ClassifyOutcome<Response>,
    E: Error + 'static,
{
    type Future = StockDelay;

    fn retry(
        &mut self,
        request: &mut Request<ReplayBody<ReqBody>>,
        result: &mut Result<Response, E>,
    ) -> Option<StockDelay> {
        self.policy.retry_call(&mut self.call, request, result)
    }

    fn clone_request(&mut self, request: &Request<ReplayBody<ReqBody>>) -> Option<Request<ReplayBody<ReqBody>>> {
        match self.call.progress.get_mut() {
            // A retry is being sent.
            Some(progress) => {
                progress.on_send(Instant::now());
            }
            // A call starts.
            None => {
                let settings = &*self.policy.settings;
                let mut context = CallContext::new(settings, settings.protocol.terms(request.view()), None);
                context.set_safety(settings.protocol.retry_safety(request.view()));
                let saves = context.saves(&settings.limits);
                if saves {
                    context.started = Some(Instant::now());
                }
                self.call = StockCall { context: Some(context), ..StockCall::default() };
                if !saves {
                    return None;
                }
            }
        }
        if let Some(context) = &self.call.context {
            self.call.sent_at = context.on_send(&self.policy.settings.strategy);
        }
        let body = request.body().try_clone()?;
        let mut copy = Request::new(body);
        *copy.method_mut() = request.method().clone();
        *copy.uri_mut() = request.uri().clone();
        *copy.version_mut() = request.version();
        *copy.headers_mut() = request.headers().clone();
        *copy.extensions_mut() = request.extensions().clone();
        witness::attend(request.extensions(), 1, false);
        Some(copy)
    }
}

impl<Backoff: Schedule, B: Budget> RetryPolicy<Http, Backoff, B, OwnError> {
    /// Classifies an outcome and decides whether to retry, with the call's state taken out of the policy.
    fn retry_call<ReqBody, Response, E>(
        &self,
        call: &mut StockCall<Backoff::Delays>,
        request: &mut Request<ReplayBody<ReqBody>>,
        result: &mut Result<Response, E>,
    ) -> Option<StockDelay>
    where
        ReqBody: Body<Data = Bytes, Error: Into<BoxError>>,
        Http: ClassifyOutcome<Response>,
        E: Error + 'static,
    {
        let context = call.context.as_mut()?;
        let protocol = &self.settings.protocol;
        let outcome = result.as_ref().map_err(|error| error as &(dyn Error + 'static));
        let classification = protocol.classify_outcome(outcome, context.options.as_ref(), Some(&*request));
        let destination = protocol.destination_of(request.view()).into_owned();
        let stop = match classification.verdict.failure() {
            None if classification.verdict == Verdict::Success => StopReason::Succeeded,
            None => StopReason::Permanent,
            Some(_) => {
                let now = Instant::now();
                let facts = protocol.facts(outcome).under(classification.verdict);
                if facts.from_fallback {
                    context.void_key();
                }
                let context = &*context;
                let attempt = FailedAttempt {
                    refused: facts.refused,
                    undone: facts.undone,
                    fault: facts.fault,
                    responded: facts.responded,
                    source_failed: outcome.is_err() && request.body().source_failed(),
                    replayable: request.at_hand(),
                    sent_at: call.sent_at,
                    ..FailedAttempt::new(classification, &destination, Duration::ZERO)
                };
                let progress = call.progress.get_mut().get_or_insert_with(|| {
                    let started = context.started.unwrap_or(now);
                    Box::new(Progress::new(&self.settings, context, started, destination.as_str().into()))
                });
                let reported = (None, Http::error_text(outcome));
                match progress.failed(&self.settings, context, now, attempt, reported) {
                    Ok(granted) => {
                        request.body().cancel_others();
                        if !request.at_hand() {
                            progress.revoke();
                            let end = (StopReason::BodyNotKept, classification.hint);
                            self.end_stock(call, result, &destination, end);
                            return None;
                        }
                        if !granted.replaces {
                            call.number = call.number.saturating_add(1);
                            progress.notify_retry(&self.settings.observer, call.number);
                        }
                        request.body().forget_polls();
                        witness::attend(request.extensions(), 0, progress.unproven);
                        request.extensions_mut().insert(AttemptNumber(call.number));
                        return Some(StockDelay { sleep: granted.due.map(sleep_until) });
                    }
                    Err(stop) => stop,
                }
            }
        };
        self.end_stock(call, result, &destination, (stop, classification.hint));
        None
    }

    /// Ends the call.
    fn end_stock<Response, E>(
        &self,
        call: &mut StockCall<Backoff::Delays>,
        result: &mut Result<Response, E>,
        destination: &str,
        (stop, hint): (StopReason, ServerHint),
    ) where
        Http: ClassifyOutcome<Response>,
        E: Error + 'static,
    {
        let settings = &self.settings;
        let Some(context) = &call.context else { return };
        if stop == StopReason::Succeeded {
            context.succeeded(settings, call.sent_at);
        }
        let account = call.progress.get_mut().as_mut().map(|progress| progress.account());
        let end = match stop {
            StopReason::Succeeded => CallEnd::Succeeded,
            // Only a response earns credit.
            StopReason::Permanent if result.is_ok() => {
                CallEnd::Permanent(context.permanent_hint(&settings.limits, hint))
            }
            _ => CallEnd::Failed,
        };
        account.unwrap_or_default().settle(end, destination, &settings.budget);
        let mut progress = call.progress.get_mut().take();
        let last = match &*result {
            Ok(response) => Ok(<Http as ClassifyOutcome<Response>>::code(response)),
            Err(error) => Err(error as &(dyn Error + 'static)),
        };
        let (number, progress) = ((call.number, None), progress.as_deref_mut());
        let report = report_end(&self.settings, context, number, stop, progress, || destination.into(), last);
        if let (Ok(response), Some(report)) = (result, report) {
            settings.protocol.attach(response, report);
        }
    }
}

/// For tower's `Retry`, a request is its own saved form.
impl<ReqBody> Saved for Request<ReplayBody<ReqBody>> {
    type Body = ReqBody;

    fn view(&self) -> RequestView<'_> {
        self.into()
    }

    fn body(&self) -> Option<&ReplayBody<ReqBody>> {
        Some(Request::body(self))
    }
}

pin_project! {
    /// The delay before a retry of tower's `Retry`.
    pub struct StockDelay {
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Future for StockDelay {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.project().sleep.as_pin_mut() {
            Some(sleep) => sleep.poll(cx),
            None => Poll::Ready(()),
        }
    }
}

impl fmt::Debug for StockDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StockDelay").finish_non_exhaustive()
    }
}
