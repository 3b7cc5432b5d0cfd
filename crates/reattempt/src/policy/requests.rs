//! Constructors and settings of policies for the requests of a service.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Classification, Schedule};
use reattempt_schedule_exponential::Exponential;

use super::RetryPolicy;
use crate::call::hook::AttemptContext;
use crate::error_mode::BoxedError;
use crate::protocol::{CloneRequest, Http, Protocol};

impl RetryPolicy {
    /// Retries of HTTP requests, by status, method and server hint.
    pub fn http() -> Self {
        Self::with(Http::new())
    }
}

/// [`RetryPolicy::http`].
impl Default for RetryPolicy {
    fn default() -> Self {
        Self::http()
    }
}

impl<C: Send + Sync + 'static> RetryPolicy<CloneRequest<C>> {
    /// Retries of any service whose requests are `Clone`, as `judge` says.
    ///
    /// Every request counts as repeatable: what must not be repeated, `judge` must not call
    /// transient. `judge` returns a verdict, or a classification with a server hint.
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
    pub fn cloned<Response, V>(judge: C) -> Self
    where
        C: Fn(Result<&Response, &(dyn Error + 'static)>) -> V,
        V: Into<Classification>,
    {
        Self::with_protocol(
            CloneRequest::new(judge),
            Exponential::default(),
            RetryBudget::default(),
        )
    }
}

/// Time limits and hooks of attempts.
impl<K, D, B, M> RetryPolicy<K, D, B, M>
where
    K: Protocol + Clone,
    D: Schedule + Clone,
    B: Clone,
{
    /// The most time for each attempt, up to its response head.
    ///
    /// An attempt that takes longer is dropped and counts as a timeout, retried where the request may
    /// be repeated. The call's error becomes tower's `BoxError`, with a [`TimedOut`](crate::TimedOut)
    /// inside when the last attempt timed out; a [`Deadline`](crate::Deadline) then interrupts too, also
    /// with an error in place of a protocol's answer.
    ///
    /// It does not cover a body that stalls after the head. Over HTTP/2 a retry uses the connection of the
    /// attempt that timed out, which may have stalled. The page on the order of layers in the crate
    /// `reattempt` names the remedies.
    #[doc(alias = "timeout")]
    pub fn attempt_timeout(self, timeout: Duration) -> RetryPolicy<K, D, B, BoxedError> {
        let mut settings = self.into_settings();
        settings.attempt_timeout = Some(timeout);
        RetryPolicy::of(settings)
    }

    /// Makes the call's error tower's `BoxError`, and lets a [`Deadline`](crate::Deadline) interrupt
    /// an attempt. A call whose deadline has passed already is not sent. A protocol with an answer for it does so anyway, with that answer in place of an error. Needed
    /// for inner services whose error is a `BoxError` already.
    pub fn boxed_errors(self) -> RetryPolicy<K, D, B, BoxedError> {
        RetryPolicy::of(self.into_settings())
    }

    /// Runs before each attempt, the first included, and may change its head: fresh tokens,
    /// signatures, trace headers. A response with status 401 or 409 can be retried by giving that
    /// status a verdict ([`Http::on_status`]) beside such a hook.
    ///
    /// An instance of the service is readied after the hook, so a hook may use the same limited client.
    /// All attempts of the call are sent by the spare instance ([`clone_per_call`](Self::clone_per_call)).
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
    #[doc(alias = "on_retry")]
    pub fn before_attempt<H>(self, hook: H) -> Self
    where
        H: for<'a> Fn(
                &'a mut K::Head,
                AttemptContext,
            ) -> std::pin::Pin<Box<dyn Future<Output = ()> + Send + 'a>>
            + Send
            + Sync
            + 'static,
    {
        self.set(|settings| settings.hook = Some(Arc::new(hook)))
    }
}
