//! The functions [`retry`] and [`retry_blocking`], and the type that they return: an operation with its settings.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use reattempt_core::{Classification, Failure, FailureKind, Schedule, Verdict};

use super::policy::{IntoOperationPolicy, OperationPolicy};
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
pub fn retry<Policy, F, Fut, T, E>(policy: Policy, operation: F) -> Retrying<F, E, Policy::Schedule, Policy::Budget>
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
pub fn retry_blocking<Policy, F, T, E>(policy: Policy, operation: F) -> Retrying<F, E, Policy::Schedule, Policy::Budget>
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
pub struct Retrying<F, E, Backoff: Schedule, B, J = fn(&E) -> Classification, N = fn(&E, Duration), Clock = TokioTimer>
{
    operation: F,
    policy: OperationPolicy<Backoff, B>,
    options: Option<CallOptions>,
    classify: J,
    notify: N,
    timer: Clock,
    /// `true` if waits do not need a tokio runtime.
    own_timer: bool,
    error: PhantomData<fn(E)>,
}

impl<F, E, Backoff: Schedule, B> Retrying<F, E, Backoff, B> {
    fn new<Policy: IntoOperationPolicy<Schedule = Backoff, Budget = B>>(policy: Policy, operation: F) -> Self {
        Self {
            operation,
            policy: policy.into_operation_policy(),
            options: None,
            classify: |_| Verdict::Transient(Failure::new(FailureKind::Other)).into(),
            notify: |_, _| {},
            timer: TokioTimer,
            own_timer: false,
            error: PhantomData,
        }
    }
}

impl<F, E, Backoff: Schedule, B, J, N, Clock> Retrying<F, E, Backoff, B, J, N, Clock> {
    /// Sets which errors are retried. If the closure returns `false`, the call ends. Default: every error.
    ///
    /// This replaces an earlier [`classify`](Self::classify).
    #[doc(alias("retry_if", "filter", "retryable"))]
    pub fn when<W>(
        self,
        is_retryable: W,
    ) -> Retrying<F, E, Backoff, B, impl Fn(&E) -> Classification + use<F, E, Backoff, B, J, N, Clock, W>, N, Clock>
    where
        W: Fn(&E) -> bool,
    {
        self.classify(move |error: &E| match is_retryable(error) {
            true => Verdict::Transient(Failure::new(FailureKind::Other)),
            false => Verdict::Permanent,
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
        classify: W,
    ) -> Retrying<F, E, Backoff, B, impl Fn(&E) -> Classification + use<F, E, Backoff, B, J, N, Clock, W, V>, N, Clock>
    where
        W: Fn(&E) -> V,
        V: Into<Classification>,
    {
        self.map(|_, notify, timer| (move |error: &E| classify(error).into(), notify, timer))
    }

    /// Sets a closure that is called before each retry, with the error and the delay.
    #[doc(alias = "on_retry")]
    pub fn notify<W: FnMut(&E, Duration)>(self, notify: W) -> Retrying<F, E, Backoff, B, J, W, Clock> {
        self.map(|classify, _, timer| (classify, notify, timer))
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
    ) -> Retrying<F, E, Backoff, B, J, N, impl Timer<Sleep = Wait> + use<F, E, Backoff, B, J, N, Clock, Sleep, Wait>>
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
    pub fn timer<Own: Timer>(self, timer: Own) -> Retrying<F, E, Backoff, B, J, N, Own> {
        Retrying { own_timer: true, ..self.map(|classify, notify, _| (classify, notify, timer)) }
    }

    /// Sets options for this call, which override the policy: limits, deadline, schedule and report slot. A deadline
    /// prevents further retries, but does not interrupt an attempt.
    pub fn with_options(self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self }
    }

    /// Returns these settings with other functions.
    fn map<J2, N2, Own>(
        self,
        change: impl FnOnce(J, N, Clock) -> (J2, N2, Own),
    ) -> Retrying<F, E, Backoff, B, J2, N2, Own> {
        let Self { operation, policy, options, classify, notify, timer, own_timer, error } = self;
        let (classify, notify, timer) = change(classify, notify, timer);
        Retrying { operation, policy, options, classify, notify, timer, own_timer, error }
    }

    /// Returns the operation and the initial state of its call.
    #[inline]
    pub(super) fn begin(self, blocking: bool) -> (F, Tries<Backoff, B, J, N, Clock>)
    where
        Clock: Timer,
    {
        let Self { operation, policy, options, classify, notify, timer, own_timer, .. } = self;
        (operation, Tries::new(policy.0, options.as_ref(), classify, notify, (timer, own_timer || blocking)))
    }
}

impl<F, E, Backoff, B, J, N, Clock> fmt::Debug for Retrying<F, E, Backoff, B, J, N, Clock>
where
    Backoff: Schedule + fmt::Debug,
    B: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying").field("policy", &self.policy).finish_non_exhaustive()
    }
}
