//! Constructors and settings of policies for services.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Classification, Schedule};
use reattempt_schedule_exponential::Exponential;

use super::RetryPolicy;
use crate::call::hook::AttemptContext;
use crate::error_mode::BoxedError;
use crate::protocol::{CloneRequest, Http, Protocol, protocol_setters};

impl RetryPolicy {
    /// Creates a policy for HTTP requests with the defaults listed at [`RetryPolicy`]. [`Http`] describes what is
    /// retried.
    #[doc(alias("new", "builder"))]
    pub fn http() -> Self {
        Self::with(Http::new())
    }
}

/// The protocol settings, which [`protocol`](RetryPolicy::protocol) and [`with`](RetryPolicy::with) also change.
///
/// ```
/// use http::StatusCode;
/// use reattempt::{RetryPolicy, Verdict};
///
/// let policy = RetryPolicy::http()
///     .on_status(StatusCode::LOCKED, Verdict::not_processed())
///     .max_attempts(4);
/// ```
impl<Backoff: Schedule + Clone, B: Clone, Mode> RetryPolicy<Http, Backoff, B, Mode> {
    protocol_setters!(Http: reading, http, telling, sending, proving, trusting, repeating);
}

/// Returns [`RetryPolicy::http`].
impl Default for RetryPolicy {
    fn default() -> Self {
        Self::http()
    }
}

impl<C: Send + Sync + 'static> RetryPolicy<CloneRequest<C>> {
    /// Creates a policy for any service whose requests are `Clone`. `classify` classifies the outcomes.
    ///
    /// Every request is treated as repeatable. If a request must not be repeated, `classify` must not return a
    /// transient verdict for it. `classify` returns a verdict, or a classification with a server hint.
    ///
    /// ```
    /// use std::error::Error;
    /// use reattempt::{RetryPolicy, Verdict};
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// let policy = RetryPolicy::cloned(|outcome: Result<&String, &(dyn Error + 'static)>| match outcome {
    ///     Ok(_) => Verdict::Success,
    ///     Err(_) => Verdict::Transient(Failure::new(FailureKind::Other)),
    /// });
    /// ```
    pub fn cloned<Response, V>(classify: C) -> Self
    where
        C: Fn(Result<&Response, &(dyn Error + 'static)>) -> V,
        V: Into<Classification>,
    {
        Self::with_protocol(CloneRequest::new(classify), Exponential::default(), RetryBudget::default())
    }
}

/// Time limits and hooks for attempts.
impl<P, Backoff, B, Mode> RetryPolicy<P, Backoff, B, Mode>
where
    P: Protocol + Clone,
    Backoff: Schedule + Clone,
    B: Clone,
{
    /// Sets the time limit of each attempt, up to its response head. Default: no limit.
    ///
    /// An attempt that takes longer is dropped, and is retried if the request is repeatable. The call's error type
    /// becomes tower's `BoxError`. If the last attempt timed out, the error is a [`TimedOut`](crate::TimedOut). A
    /// [`Deadline`](crate::Deadline) then interrupts attempts too. It ends the call with an error, even if the protocol
    /// has a response for a passed deadline.
    ///
    /// The limit does not apply to a body that stalls after the head. Over HTTP/2, a retry uses the connection of the
    /// attempt that timed out, and that connection may have stalled ([remedies][servers-that-stall]). With
    /// guards, set the [guard layer's timeout][attempt_timeout] instead.
    ///
    /// [servers-that-stall]: https://docs.rs/reattempt/latest/reattempt/order/index.html#servers-that-stall
    /// [attempt_timeout]: https://docs.rs/reattempt/latest/reattempt/guard/struct.GuardLayer.html#method.attempt_timeout
    #[doc(alias("timeout", "per_attempt_timeout", "per_try_timeout"))]
    pub fn attempt_timeout(self, timeout: Duration) -> RetryPolicy<P, Backoff, B, BoxedError> {
        let mut settings = self.into_settings();
        settings.attempt_timeout = Some(timeout);
        RetryPolicy::of(settings)
    }

    /// Changes the error type of calls to tower's `BoxError`, so that a [`Deadline`](crate::Deadline) can interrupt
    /// them.
    ///
    /// A call whose deadline has already passed is not sent. Inner services with a `BoxError` require this setting,
    /// because that type does not implement `Error`. Without this setting, a deadline ends a call only if the protocol
    /// has a response for that.
    pub fn boxed_errors(self) -> RetryPolicy<P, Backoff, B, BoxedError> {
        RetryPolicy::of(self.into_settings())
    }

    /// Sets a hook that runs before each attempt, including the first. The hook may change the request head, for
    /// example to add a fresh token, a signature or a trace header. Default: none. A second call replaces the hook.
    ///
    /// To retry a response with status 409, give that status a transient verdict ([`Http::on_status`]), and change the
    /// request in the hook. To renew a token after 401, see [below](#tokens).
    ///
    /// The service's `poll_ready` is called after the hook, so the hook may call the same client even if its
    /// concurrency is limited. With a hook, all attempts of a call use clones of the spare instance
    /// ([`clone_per_call`](Self::clone_per_call)).
    ///
    /// # Cancel safety
    /// The hook's future is dropped with the call.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use reattempt::retry::AttemptContext;
    ///
    /// let policy = RetryPolicy::http().before_attempt(|head: &mut http::request::Parts, attempt: AttemptContext| {
    ///     Box::pin(async move {
    ///         head.headers.insert("x-attempt", attempt.number.into());
    ///     })
    /// });
    /// ```
    ///
    /// # Tokens
    /// A token that expires fails all calls that carry it. [`Verdict::renew`] says so: the calls are one
    /// [event](crate::budget::Evidence#events) for the budget, and guards count them as served. The hook
    /// [leaves](crate::retry::Carried) the token for the next attempt's hook, which renews it only if nobody else has.
    /// The lock holds new calls back meanwhile.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use http::request::Parts;
    /// use http::{HeaderValue, StatusCode, header::AUTHORIZATION};
    /// use reattempt::retry::{AttemptContext, Carried};
    /// use reattempt::schedule::FailureKind;
    /// use reattempt::{Http, RetryPolicy, Verdict};
    /// use tokio::sync::Mutex;
    ///
    /// async fn renew() -> HeaderValue {
    ///     HeaderValue::from_static("Bearer new") // asks the token service
    /// }
    ///
    /// let token = Arc::new(Mutex::new(HeaderValue::from_static("Bearer old")));
    /// let http = Http::new().on_status(StatusCode::UNAUTHORIZED, Verdict::renew());
    /// let policy = RetryPolicy::with(http).before_attempt(move |head: &mut Parts, attempt: AttemptContext| {
    ///     let token = Arc::clone(&token);
    ///     Box::pin(async move {
    ///         let mut token = token.lock().await;
    ///         let is_stale = attempt.cause.is_some_and(|cause| cause.kind() == FailureKind::Stale);
    ///         if is_stale && attempt.carried() == Some(&*token) {
    ///             *token = renew().await;
    ///         }
    ///         head.headers.insert(AUTHORIZATION, token.clone());
    ///         head.extensions.insert(Carried::new(token.clone()));
    ///     })
    /// });
    /// ```
    ///
    /// [`Verdict::renew`]: crate::Verdict::renew
    #[doc(alias("on_retry", "on_attempt", "map_request"))]
    pub fn before_attempt<H>(self, hook: H) -> Self
    where
        H: for<'a> Fn(&'a mut P::Head, AttemptContext) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>
            + Send
            + Sync
            + 'static,
    {
        self.set(|settings| settings.hook = Some(Arc::new(hook)))
    }
}
