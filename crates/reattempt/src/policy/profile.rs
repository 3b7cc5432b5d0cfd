//! A schedule, its limits and its budget as one value, which a policy takes in one line.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Limits, Schedule, SharedSchedule};

use super::RetryPolicy;
use crate::call::protocol::Protocol;

/// The way in which a library or service retries, as one value: a schedule, its limits, and a budget if it has one. A
/// profile never sets which outcomes are retried.
///
/// The [`profile`](crate::profile) module has the well-known ones. A profile of your own begins with
/// [`new`](Self::new):
///
/// ```
/// use std::time::Duration;
/// use reattempt::RetryPolicy;
/// use reattempt::profile::Profile;
/// use reattempt::schedule::Exponential;
///
/// fn of_our_house() -> Profile<Exponential> {
///     let mut profile = Profile::new(Exponential::equal_jitter(Duration::from_millis(50)));
///     profile.max_attempts = 4;
///     profile
/// }
///
/// let policy = RetryPolicy::http().profile(of_our_house());
/// assert_eq!(policy.limits().max_attempts, 4);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Profile<S> {
    /// The delays between attempts.
    pub schedule: S,
    /// The most attempts in all, the first included; `u32::MAX` for no limit.
    pub max_attempts: u32,
    /// The most time from the start of a call to the start of its last attempt; `None` for no limit.
    pub max_elapsed: Option<Duration>,
    /// The budget, which clones of a profile share. With `None` the policy keeps its own.
    pub budget: Option<RetryBudget>,
}

impl<S> Profile<S> {
    /// Creates a profile of this schedule with the default limits (3 attempts, 30 s) and no budget.
    pub fn new(schedule: S) -> Self {
        let Limits { max_attempts, max_elapsed, .. } = Limits::default();
        Self { schedule, max_attempts, max_elapsed, budget: None }
    }

    /// Erases the type of the schedule, for profiles that are chosen at run time.
    pub fn shared(self) -> Profile<SharedSchedule>
    where
        S: Schedule + Send + Sync + 'static,
        S::Delays: Send + 'static,
    {
        self.map(SharedSchedule::new)
    }

    /// Returns the profile with another schedule, which `change` makes from its own: capped or jittered, for instance.
    pub fn map<T>(self, change: impl FnOnce(S) -> T) -> Profile<T> {
        Profile {
            schedule: change(self.schedule),
            max_attempts: self.max_attempts,
            max_elapsed: self.max_elapsed,
            budget: self.budget,
        }
    }
}

/// Profiles. They need a policy with a [`RetryBudget`], which every new policy has; set another kind of budget
/// afterwards.
impl<K, D, M> RetryPolicy<K, D, RetryBudget, M>
where
    K: Protocol + Clone,
    D: Schedule + Clone,
{
    /// Sets the schedule, the limits and the budget (if there is one) of a profile.
    ///
    /// Limits and a budget that were set on the policy have precedence, whether they were set before or after. The
    /// schedule is always replaced. [`validate`](Self::validate) has a warning if that was set by
    /// [`backoff`](Self::backoff).
    pub fn profile<S: Schedule>(self, profile: Profile<S>) -> RetryPolicy<K, S, RetryBudget, M> {
        let mut settings = self.into_settings().map(|_, budget| (profile.schedule, budget));
        settings.chosen.backoff_replaced = settings.chosen.backoff;
        if !settings.chosen.max_attempts {
            settings.limits.max_attempts = profile.max_attempts;
        }
        if !settings.chosen.max_elapsed {
            settings.limits.max_elapsed = profile.max_elapsed;
        }
        if let Some(budget) = profile.budget.filter(|_| !settings.chosen.budget) {
            settings.budget = budget;
        }
        RetryPolicy::of(settings)
    }
}
