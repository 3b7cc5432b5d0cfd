//! The functions [`retry`] and [`retry_blocking`], and the type that they return: an operation with its settings.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use reattempt_core::{Classification, Schedule, Verdict};

use super::policy::{IntoOperationPolicy, OperationPolicy};
use super::rules::{ClassifiedResult, EveryError, Rules, WithErrors, WithNotice, WithValues};
use super::safety::Safety;
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
use super::timer::SleepFunction;
use super::timer::{Timer, TokioTimer};
use super::tries::Tries;
use crate::call::options::CallOptions;

/// Retries an asynchronous operation until it succeeds or a limit is reached.
///
/// | `policy` | limits | budget |
/// |---|---|---|
/// | [`RetryPolicy::operations`](crate::RetryPolicy::operations) | the policy's | the policy's |
/// | a [`Profile`](crate::profile::Profile) | the profile's | the profile's, if any |
/// | a schedule | 3 attempts, 30 s | none |
///
/// `operation` is called once for each attempt, and must be safe to repeat. By default, every error is retried;
/// [`when`](Retrying::when) and [`classify`](Retrying::classify) restrict that. Attempts have no timeout. Delays
/// require a tokio runtime with its time driver enabled, unless the call has its own timer
/// ([`sleep_with`](Retrying::sleep_with), [`timer`](Retrying::timer)).
///
/// # Errors
/// Returns a [`RetryError`](super::RetryError) with the operation's last error and the stop reason.
///
/// # Cancel safety
/// Dropping the future cancels the attempt in flight or the wait, and returns an unspent token to the budget.
///
/// ```
/// use std::time::Duration;
/// use reattempt::retry;
/// use reattempt::schedule::Exponential;
///
/// # async fn connect() -> std::io::Result<u32> { Ok(7) }
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let connection = retry(Exponential::full_jitter(Duration::from_millis(100)), connect)
///     .when(|error| error.kind() != std::io::ErrorKind::PermissionDenied)
///     .notify(|error, delay| eprintln!("{error}; again in {delay:?}"))
///     .await?;
/// # assert_eq!(connection, 7);
/// # Ok::<(), reattempt::operation::RetryError<std::io::Error>>(())
/// # }).unwrap();
/// ```
pub fn retry<Policy, F, Fut, T, E>(policy: Policy, operation: F) -> Retrying<F, T, E, Policy::Schedule, Policy::Budget>
where
    Policy: IntoOperationPolicy,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retrying::new(policy, operation)
}

/// Retries a blocking operation, which [`call`](Retrying::call) runs.
///
/// ```
/// use std::time::Duration;
/// use reattempt::operation::retry_blocking;
/// use reattempt::schedule::Constant;
///
/// let mut tries = 0;
/// let text = retry_blocking(Constant::new(Duration::from_millis(1)), || {
///     tries += 1;
///     if tries < 3 { Err("not there yet") } else { Ok("here") }
/// })
/// .call();
/// assert_eq!(text.unwrap(), "here");
/// ```
pub fn retry_blocking<Policy, F, T, E>(
    policy: Policy,
    operation: F,
) -> Retrying<F, T, E, Policy::Schedule, Policy::Budget>
where
    Policy: IntoOperationPolicy,
    F: FnMut() -> Result<T, E>,
{
    Retrying::new(policy, operation)
}

/// An operation with its retry settings.
///
/// Await the value returned by [`retry()`]. On a value returned by [`retry_blocking`], use [`call`](Retrying::call).
#[must_use = "nothing happens before it is awaited or called"]
pub struct Retrying<F, T, E, Backoff: Schedule, B, R = EveryError, Clock = TokioTimer> {
    operation: F,
    policy: OperationPolicy<Backoff, B>,
    options: Option<CallOptions>,
    rules: R,
    timer: Clock,
    pub(super) safety: Safety,
    result: PhantomData<fn(T, E)>,
}

impl<F, T, E, Backoff: Schedule, B> Retrying<F, T, E, Backoff, B> {
    fn new<Policy: IntoOperationPolicy<Schedule = Backoff, Budget = B>>(policy: Policy, operation: F) -> Self {
        Self {
            operation,
            policy: policy.into_operation_policy(),
            options: None,
            rules: EveryError,
            timer: TokioTimer,
            safety: Safety::default(),
            result: PhantomData,
        }
    }
}

/// Rules for errors.
impl<F, T, E, Backoff: Schedule, B, R, Clock> Retrying<F, T, E, Backoff, B, R, Clock> {
    /// Sets which errors are retried. If the closure returns `false`, the call ends. Default: every error.
    ///
    /// This replaces an earlier [`classify`](Self::classify).
    #[doc(alias("retry_if", "filter", "retryable"))]
    pub fn when<W>(
        self,
        mut is_retryable: W,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock, W>, Clock>
    where
        R: Rules<T, E>,
        W: FnMut(&E) -> bool,
    {
        self.classify(move |error: &E| match is_retryable(error) {
            true => ClassifiedResult::transient().classification,
            false => Verdict::Permanent.into(),
        })
    }

    /// Classifies errors. Use this if the kind of failure matters: for a schedule per kind, or for a budget that
    /// charges more for some kinds. This replaces an earlier [`when`](Self::when).
    ///
    /// The closure returns a verdict, optionally with the delay that the server asked for. If the verdict is success or
    /// permanent failure, the call ends with the error.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::{RetryPolicy, Verdict, retry};
    /// use reattempt::classify::ServerHint;
    ///
    /// # struct Busy { wait: Duration }
    /// # async fn book() -> Result<(), Busy> { Ok(()) }
    /// # async fn booked() -> Result<(), reattempt::operation::RetryError<Busy>> {
    /// retry(RetryPolicy::operations(), book)
    ///     .classify(|busy| Verdict::throttled().with_hint(ServerHint::After(busy.wait)))
    ///     .await
    /// # }
    /// ```
    pub fn classify<W, V>(
        self,
        mut classify: W,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock, W, V>, Clock>
    where
        R: Rules<T, E>,
        W: FnMut(&E) -> V,
        V: Into<Classification>,
    {
        self.with_rules(|rules| WithErrors { rules, classify: move |error: &E| classify(error).into() })
    }

    /// Sets a closure that is called before each retry after an error, with the error and the delay.
    /// [`notify_ok`](Self::notify_ok) is for values.
    #[doc(alias = "on_retry")]
    pub fn notify<W>(
        self,
        mut notify: W,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock, W>, Clock>
    where
        R: Rules<T, E>,
        W: FnMut(&E, Duration),
    {
        let notify = move |result: Result<&T, &E>, delay| result.err().map(|error| notify(error, delay)).is_some();
        self.with_rules(|rules| WithNotice { rules, notify })
    }
}

/// Rules for `Ok` values. When the call gives up, it returns the last value as it was.
impl<F, T, E, Backoff: Schedule, B, R, Clock> Retrying<F, T, E, Backoff, B, R, Clock> {
    /// Adds a condition on `Ok` values. If the closure returns `true`, the attempt counts as a transient failure.
    /// Default: every value is a success.
    ///
    /// If the call is not retried again, it returns the last value, and not an error. A value for which the closure
    /// returns `false` is left to the rules set earlier. A report slot in [`with_options`](Self::with_options) has the
    /// reason for the end of the call.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::retry;
    /// use reattempt::schedule::Constant;
    ///
    /// # enum Job { Queued, Done }
    /// # async fn status() -> std::io::Result<Job> { Ok(Job::Done) }
    /// # async fn wait() -> Result<Job, reattempt::operation::RetryError<std::io::Error>> {
    /// retry(Constant::new(Duration::from_secs(1)), status).when_ok(|job| matches!(job, Job::Queued)).await
    /// # }
    /// ```
    #[doc(alias("retry_on_result", "handle_result", "retry_if_result"))]
    pub fn when_ok<W>(
        self,
        mut is_failure: W,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock, W>, Clock>
    where
        R: Rules<T, E>,
        W: FnMut(&T) -> bool,
    {
        self.classify_ok(move |value: &T| is_failure(value).then_some(ClassifiedResult::transient().classification))
    }

    /// Adds a classifier of `Ok` values, for a kind of failure or a delay that the server asked for. If it returns
    /// `None`, the rules set earlier decide.
    ///
    /// If the verdict is permanent, or the call is not retried again for another reason, it returns the value.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::{RetryPolicy, Verdict, retry};
    /// use reattempt::classify::ServerHint;
    ///
    /// # struct Reply { busy_for: Option<Duration> }
    /// # async fn book() -> std::io::Result<Reply> { Ok(Reply { busy_for: None }) }
    /// # async fn booked() -> Result<Reply, reattempt::operation::RetryError<std::io::Error>> {
    /// retry(RetryPolicy::operations(), book)
    ///     .classify_ok(|reply| Some(Verdict::throttled().with_hint(ServerHint::After(reply.busy_for?))))
    ///     .await
    /// # }
    /// ```
    pub fn classify_ok<W, V>(
        self,
        mut classify: W,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock, W, V>, Clock>
    where
        R: Rules<T, E>,
        W: FnMut(&T) -> Option<V>,
        V: Into<Classification>,
    {
        self.with_rules(|rules| WithValues { rules, classify: move |value: &T| classify(value).map(Into::into) })
    }

    /// Sets a closure that is called before each retry after an `Ok` value, with the value and the delay.
    pub fn notify_ok<W>(
        self,
        mut notify: W,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock, W>, Clock>
    where
        R: Rules<T, E>,
        W: FnMut(&T, Duration),
    {
        let notify = move |result: Result<&T, &E>, delay| result.map(|value| notify(value, delay)).is_ok();
        self.with_rules(|rules| WithNotice { rules, notify })
    }
}

/// Other settings.
impl<F, T, E, Backoff: Schedule, B, R, Clock> Retrying<F, T, E, Backoff, B, R, Clock> {
    /// Sets whether the operation may be carried out twice. With `false`, it is retried only after a failure with the
    /// verdict [`NotProcessed`](Verdict::NotProcessed), which proves that nothing was done. Default: `true`.
    ///
    /// [`CallOptions::repeatable`] takes precedence.
    ///
    /// ```
    /// use reattempt::{RetryPolicy, StopReason, Verdict, retry};
    ///
    /// # async fn order() -> Result<u32, &'static str> { Err("connection closed") }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let error = retry(RetryPolicy::operations(), order)
    ///     .classify(|error| match *error {
    ///         "connection refused" => Verdict::not_processed(),
    ///         _ => Verdict::transient(),
    ///     })
    ///     .repeatable(false)
    ///     .await
    ///     .unwrap_err();
    /// assert_eq!(error.stop_reason(), StopReason::NotRepeatable);
    /// # });
    /// ```
    #[doc(alias("idempotent", "safe"))]
    pub fn repeatable(mut self, repeatable: bool) -> Self {
        self.safety.repeatable = repeatable;
        self
    }

    /// Waits with this function instead of tokio's timer, so no tokio runtime is required. Attempts are timed with the
    /// system clock.
    ///
    /// The function takes the duration of the wait and returns a future that completes after that time, as in
    /// `.sleep_with(async_io::Timer::after)`. On `wasm32-unknown-unknown`, which has no clock, use
    /// [`timer`](Self::timer) instead.
    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    pub fn sleep_with<Sleep, Wait>(
        self,
        sleep: Sleep,
    ) -> Retrying<F, T, E, Backoff, B, R, impl Timer<Sleep = Wait> + use<F, T, E, Backoff, B, R, Clock, Sleep, Wait>>
    where
        Sleep: FnMut(Duration) -> Wait,
        Wait: Future,
    {
        self.timer(SleepFunction(sleep))
    }

    /// Uses this clock and timer instead of tokio's, for other runtimes, `wasm32-unknown-unknown` and tests.
    ///
    /// A [`Deadline`](crate::Deadline) uses tokio's clock. The time left at the start of the call is converted to this
    /// clock.
    pub fn timer<Own: Timer>(self, timer: Own) -> Retrying<F, T, E, Backoff, B, R, Own> {
        let Self { operation, policy, options, rules, safety, result, .. } = self;
        let safety = Safety { own_timer: true, ..safety };
        Retrying { operation, policy, options, rules, timer, safety, result }
    }

    /// Sets options for this call, which override the policy: limits, deadline, schedule and report slot. A deadline
    /// prevents further retries, but does not interrupt an attempt.
    pub fn with_options(self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self }
    }

    /// Sets the maximum number of attempts, including the first. `None` removes the limit. It overrides that of the
    /// policy, and is one of the options that [`with_options`](Self::with_options) replaces.
    pub fn max_attempts(self, attempts: impl Into<Option<u32>>) -> Self {
        let options = self.options.unwrap_or_default().max_attempts(attempts);
        Self { options: Some(options), ..self }
    }

    /// Sets the maximum time since the start of the call. A retry that would start later is not sent, and an attempt is
    /// not interrupted. `None` removes the limit. It overrides that of the policy, and is one of the options that
    /// [`with_options`](Self::with_options) replaces.
    pub fn max_elapsed(self, elapsed: impl Into<Option<Duration>>) -> Self {
        let options = self.options.unwrap_or_default().max_elapsed(elapsed);
        Self { options: Some(options), ..self }
    }

    /// Returns these settings with other rules.
    pub(super) fn with_rules<R2>(self, change: impl FnOnce(R) -> R2) -> Retrying<F, T, E, Backoff, B, R2, Clock> {
        let Self { operation, policy, options, rules, timer, safety, result } = self;
        Retrying { operation, policy, options, rules: change(rules), timer, safety, result }
    }

    /// Returns the operation and the initial state of its call.
    #[inline]
    pub(super) fn begin(self, blocking: bool) -> (F, Tries<Backoff, B, R, Clock>)
    where
        Clock: Timer,
    {
        let Self { operation, policy, options, rules, timer, safety, .. } = self;
        let safety = Safety { own_timer: safety.own_timer || blocking, ..safety };
        (operation, Tries::new(policy.0, options.as_ref(), rules, timer, safety))
    }
}

impl<F, T, E, Backoff, B, R, Clock> fmt::Debug for Retrying<F, T, E, Backoff, B, R, Clock>
where
    Backoff: Schedule + fmt::Debug,
    B: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying").field("policy", &self.policy).finish_non_exhaustive()
    }
}
