//! Policies for operations, and the values that are turned into one.

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Schedule, Unlimited};

use crate::call::protocol::{Operations, OwnError};
use crate::policy::{Profile, RetryPolicy};

impl RetryPolicy<Operations> {
    /// Creates the policy for [`retry`](crate::retry()) and
    /// [`retry_blocking`](crate::operation::retry_blocking), with every default in the table of [`RetryPolicy`]. Calls share
    /// one budget.
    ///
    /// The policy does not time attempts out, and has no hook: the operation itself can do both.
    ///
    /// ```
    /// use reattempt::{RetryPolicy, retry};
    ///
    /// # async fn load() -> Result<(), std::io::Error> { Ok(()) }
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// // One policy for all calls of a database, and with it one budget.
    /// let policy = RetryPolicy::operations().max_attempts(5);
    /// retry(&policy, load).await?;
    /// # Ok::<(), reattempt::operation::RetryError<std::io::Error>>(())
    /// # }).unwrap();
    /// ```
    pub fn operations() -> Self {
        Self::with_protocol(Operations, Default::default(), RetryBudget::default())
    }
}

/// A value that [`retry`](crate::retry()) accepts: a [`RetryPolicy::operations`], a reference to one, a [`Profile`], or any
/// schedule.
pub trait IntoOperationPolicy {
    /// The schedule of the delays.
    type Schedule: Schedule;
    /// The budget, which must grant every retry.
    type Budget: Budget;

    /// Returns the policy.
    fn into_operation_policy(self) -> RetryPolicy<Operations, Self::Schedule, Self::Budget>;
}

impl<D: Schedule, B: Budget> IntoOperationPolicy for RetryPolicy<Operations, D, B, OwnError> {
    type Schedule = D;
    type Budget = B;

    fn into_operation_policy(self) -> Self {
        self
    }
}

impl<D: Schedule, B: Budget> IntoOperationPolicy for &RetryPolicy<Operations, D, B, OwnError> {
    type Schedule = D;
    type Budget = B;

    fn into_operation_policy(self) -> RetryPolicy<Operations, D, B> {
        self.clone()
    }
}

/// With the budget of the profile, or none.
impl<S: Schedule> IntoOperationPolicy for Profile<S> {
    type Schedule = S;
    type Budget = RetryBudget;

    fn into_operation_policy(mut self) -> RetryPolicy<Operations, S, RetryBudget> {
        self.budget.get_or_insert_with(RetryBudget::unlimited);
        RetryPolicy::operations().profile(self)
    }
}

impl<D: Schedule> IntoOperationPolicy for D {
    type Schedule = D;
    type Budget = Unlimited;

    fn into_operation_policy(self) -> RetryPolicy<Operations, D, Unlimited> {
        RetryPolicy::with_protocol(Operations, self, Unlimited)
    }
}
