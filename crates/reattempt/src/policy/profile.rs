//! A schedule and its limits under one name, so that a policy takes them in one line.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Limits, Schedule, SharedSchedule};

use super::RetryPolicy;
use crate::call::protocol::Protocol;

/// The retries of some library or service, as one value: a schedule, its limits, and a
/// budget where that is part of it. Never what may be retried.
///
/// The [`profile`](crate::profile) module has the well-known ones. One of your own, for all clients of a
/// company perhaps, begins with [`new`](Self::new):
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
    /// The most attempts in all, the first included; `u32::MAX` where there is no limit.
    pub max_attempts: u32,
    /// The most time from the start of a call to the start of its last attempt; `None` where there
    /// is no limit.
    pub max_elapsed: Option<Duration>,
    /// The budget that belongs to it; `None` leaves the policy its own. Clones of a profile share it.
    pub budget: Option<RetryBudget>,
}

impl<S> Profile<S> {
    /// This schedule with the default limits: 3 attempts, 30 s.
    pub fn new(schedule: S) -> Self {
        let Limits { max_attempts, max_elapsed, .. } = Limits::default();
        Self { schedule, max_attempts, max_elapsed, budget: None }
    }

    /// Erases the type of its schedule: for profiles chosen at run time.
    pub fn shared(self) -> Profile<SharedSchedule>
    where
        S: Schedule + Send + Sync + 'static,
        S::Delays: Send + 'static,
    {
        self.map(SharedSchedule::new)
    }

    /// Returns the profile with a schedule made from its own: capped, jittered, kept by a handle.
    pub fn map<T>(self, change: impl FnOnce(S) -> T) -> Profile<T> {
        Profile {
            schedule: change(self.schedule),
            max_attempts: self.max_attempts,
            max_elapsed: self.max_elapsed,
            budget: self.budget,
        }
    }
}

/// Policies with a [`RetryBudget`], as all are at first; give one of another kind after the profile.
impl<K, D, M> RetryPolicy<K, D, RetryBudget, M>
where
    K: Protocol + Clone,
    D: Schedule + Clone,
{
    /// Sets the schedule, the limits and, if it has one, the budget of a profile.
    ///
    /// A limit or a budget that was set on the policy holds, whether it was set before or after. The schedule
    /// becomes that of the profile.
    pub fn profile<S: Schedule>(self, profile: Profile<S>) -> RetryPolicy<K, S, RetryBudget, M> {
        let mut settings = self.into_settings().map(|_, budget| (profile.schedule, budget));
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
