//! The functions [`retry`] and [`retry_blocking`], and the operation with its settings that they return.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use reattempt_core::{Classification, Failure, FailureKind, Schedule, Verdict};

use super::policy::IntoOperationPolicy;
use super::tries::Tries;
use crate::call::options::CallOptions;
use crate::call::protocol::Operations;
use crate::policy::RetryPolicy;

/// Retries an asynchronous operation until it succeeds, or there is reason to stop.
///
/// `policy` is a [`RetryPolicy::operations`], a [`Profile`](crate::profile::Profile), which brings its own limits, or just a
/// schedule, which then goes with the default limits of a policy (three attempts, 30 s); neither of
/// these two has a budget unless the profile names one. `operation` is called once for each
/// attempt; every error counts as worth a retry unless [`when`](Retrying::when) or
/// [`classify`](Retrying::classify) says otherwise, and every operation as one that may be repeated: an
/// operation that must not run twice is not to be given here.
///
/// # Errors
/// A [`RetryError`](super::RetryError) with the operation's last error, and why no further attempt was made.
///
/// # Cancel safety
/// Dropping the future drops the attempt under way or the wait, and gives an unspent token of the
/// budget back.
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
pub fn retry<P, F, Fut, T, E>(policy: P, operation: F) -> Retrying<F, E, P::Schedule, P::Budget>
where
    P: IntoOperationPolicy,
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, E>>,
{
    Retrying::new(policy, operation)
}

/// Retries an operation that blocks its thread; [`call`](Retrying::call) runs it.
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
pub fn retry_blocking<P, F, T, E>(policy: P, operation: F) -> Retrying<F, E, P::Schedule, P::Budget>
where
    P: IntoOperationPolicy,
    F: FnMut() -> Result<T, E>,
{
    Retrying::new(policy, operation)
}

/// An operation that is to be retried: awaited, or [called](Retrying::call) if it blocks.
#[must_use = "nothing happens before it is awaited or called"]
pub struct Retrying<F, E, D: Schedule, B, J = fn(&E) -> Classification, N = fn(&E, Duration)> {
    operation: F,
    policy: RetryPolicy<Operations, D, B>,
    options: Option<CallOptions>,
    judge: J,
    notify: N,
    error: PhantomData<fn(E)>,
}

impl<F, E, D: Schedule, B> Retrying<F, E, D, B> {
    fn new<P>(policy: P, operation: F) -> Self
    where
        P: IntoOperationPolicy<Schedule = D, Budget = B>,
    {
        Self {
            operation,
            policy: policy.into_operation_policy(),
            options: None,
            judge: |_| Verdict::Transient(Failure::new(FailureKind::Other)).into(),
            notify: |_, _| {},
            error: PhantomData,
        }
    }
}

impl<F, E, D: Schedule, B, J, N> Retrying<F, E, D, B, J, N> {
    /// Which errors are worth a retry; any other is permanent and ends the call. All by default.
    ///
    /// Replaces a [`classify`](Self::classify) given before.
    #[doc(alias = "retry_if")]
    pub fn when<W>(
        self,
        worth_it: W,
    ) -> Retrying<F, E, D, B, impl Fn(&E) -> Classification + use<F, E, D, B, J, N, W>, N>
    where
        W: Fn(&E) -> bool,
    {
        self.classify(move |error: &E| match worth_it(error) {
            true => Verdict::Transient(Failure::new(FailureKind::Other)),
            false => Verdict::Permanent,
        })
    }

    /// Classifies errors where the kind matters: for a schedule for each kind of failure, or to
    /// a budget that charges more for some. An error that is no failure in either way is permanent.
    ///
    /// The closure returns a verdict, or a verdict with the delay that the error names:
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
    #[doc(alias = "judge")]
    pub fn classify<W, V>(
        self,
        judge: W,
    ) -> Retrying<F, E, D, B, impl Fn(&E) -> Classification + use<F, E, D, B, J, N, W, V>, N>
    where
        W: Fn(&E) -> V,
        V: Into<Classification>,
    {
        let judge = move |error: &E| judge(error).into();
        Retrying {
            operation: self.operation,
            policy: self.policy,
            options: self.options,
            judge,
            notify: self.notify,
            error: PhantomData,
        }
    }

    /// Is called with the error and the delay before each retry.
    #[doc(alias = "on_retry")]
    pub fn notify<W>(self, notify: W) -> Retrying<F, E, D, B, J, W>
    where
        W: FnMut(&E, Duration),
    {
        Retrying {
            operation: self.operation,
            policy: self.policy,
            options: self.options,
            judge: self.judge,
            notify,
            error: PhantomData,
        }
    }

    /// Sets what this call overrides of the policy: limits, deadline, schedule, where its report goes. A
    /// deadline keeps a retry from being begun after it, and interrupts nothing.
    pub fn with_options(self, options: CallOptions) -> Self {
        Self { options: Some(options), ..self }
    }

    /// The operation, and the state of its call.
    pub(super) fn begin(self) -> (F, Tries<D, B, J, N>) {
        let Self { operation, policy, options, judge, notify, .. } = self;
        (operation, Tries::new(policy, options.as_ref(), judge, notify))
    }
}

impl<F, E, D, B, J, N> fmt::Debug for Retrying<F, E, D, B, J, N>
where
    D: Schedule + fmt::Debug,
    B: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retrying").field("policy", &self.policy).finish_non_exhaustive()
    }
}
