//! Policies for operations, and conversions into them.

use std::fmt;
use std::sync::Arc;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Schedule, Unlimited};

use crate::call::protocol::{Operations, OwnError};
use crate::call::settings::Settings;
use crate::policy::{Profile, RetryPolicy};

impl RetryPolicy<Operations> {
    /// Creates a policy for [`retry`](crate::retry()) and [`retry_blocking`](crate::operation::retry_blocking) with the
    /// defaults listed at [`RetryPolicy`]. All calls share one budget.
    ///
    /// The policy has no attempt timeout and no hook, because the operation can limit and prepare each attempt itself.
    ///
    /// ```
    /// use reattempt::{RetryPolicy, retry};
    ///
    /// # async fn load() -> Result<(), std::io::Error> { Ok(()) }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// // One policy, and so one budget, for all calls to a database.
    /// let policy = RetryPolicy::operations().max_attempts(5);
    /// retry(&policy, load).await?;
    /// # Ok::<(), reattempt::operation::RetryError<std::io::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn operations() -> Self {
        Self::with_protocol(Operations, Default::default(), RetryBudget::default())
    }
}

/// A policy that [`retry`](crate::retry()) accepts: a [`RetryPolicy::operations`], a reference to one, a [`Profile`],
/// or any schedule.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no policy of operations",
    note = "`RetryPolicy::http()` and the like are for the requests of a service; for an operation use `RetryPolicy::operations()`, a schedule or a profile"
)]
pub trait IntoOperationPolicy {
    /// The schedule type.
    type Schedule: Schedule;
    /// The budget type.
    type Budget: Budget;

    /// Converts this value to a policy.
    fn into_operation_policy(self) -> OperationPolicy<Self::Schedule, Self::Budget>;
}

/// The policy of one operation: a [`RetryPolicy`], or a schedule with the default limits.
///
/// With only a schedule, nothing is allocated before an attempt fails.
pub struct OperationPolicy<Backoff, B>(pub(super) Policy<Backoff, B>);

pub(super) enum Policy<Backoff, B> {
    Shared(Arc<Settings<Operations, Backoff, B>>),
    Alone(Backoff, B),
}

impl<Backoff, B> Policy<Backoff, B> {
    /// Returns `true` if the policy needs no state before the first attempt.
    #[inline]
    pub(super) fn is_plain(&self) -> bool {
        match self {
            Self::Shared(settings) => settings.plain,
            Self::Alone(..) => true,
        }
    }

    #[inline]
    pub(super) fn is_observed(&self) -> bool {
        match self {
            Self::Shared(settings) => settings.observer.is_some(),
            Self::Alone(..) => false,
        }
    }

    #[inline]
    pub(super) fn schedule(&self) -> &Backoff {
        match self {
            Self::Shared(settings) => &settings.strategy,
            Self::Alone(schedule, _) => schedule,
        }
    }

    #[inline]
    pub(super) fn budget(&self) -> &B {
        match self {
            Self::Shared(settings) => &settings.budget,
            Self::Alone(_, budget) => budget,
        }
    }
}

impl<Backoff: Schedule, B> From<RetryPolicy<Operations, Backoff, B>> for OperationPolicy<Backoff, B> {
    fn from(policy: RetryPolicy<Operations, Backoff, B>) -> Self {
        Self(Policy::Shared(policy.settings))
    }
}

impl<Backoff: fmt::Debug, B: fmt::Debug> fmt::Debug for OperationPolicy<Backoff, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OperationPolicy")
            .field("schedule", self.0.schedule())
            .field("budget", self.0.budget())
            .finish_non_exhaustive()
    }
}

impl<Backoff: Schedule, B: Budget> IntoOperationPolicy for RetryPolicy<Operations, Backoff, B, OwnError> {
    type Schedule = Backoff;
    type Budget = B;

    fn into_operation_policy(self) -> OperationPolicy<Backoff, B> {
        self.into()
    }
}

impl<Backoff: Schedule, B: Budget> IntoOperationPolicy for &RetryPolicy<Operations, Backoff, B, OwnError> {
    type Schedule = Backoff;
    type Budget = B;

    fn into_operation_policy(self) -> OperationPolicy<Backoff, B> {
        OperationPolicy(Policy::Shared(Arc::clone(&self.settings)))
    }
}

/// Uses the profile's budget, if it has one.
impl<S: Schedule> IntoOperationPolicy for Profile<S> {
    type Schedule = S;
    type Budget = RetryBudget;

    fn into_operation_policy(mut self) -> OperationPolicy<S, RetryBudget> {
        self.budget.get_or_insert_with(RetryBudget::unlimited);
        RetryPolicy::operations().profile(self).into()
    }
}

#[diagnostic::do_not_recommend]
impl<Backoff: Schedule> IntoOperationPolicy for Backoff {
    type Schedule = Backoff;
    type Budget = Unlimited;

    fn into_operation_policy(self) -> OperationPolicy<Backoff, Unlimited> {
        OperationPolicy(Policy::Alone(self, Unlimited))
    }
}
