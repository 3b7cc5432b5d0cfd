//! Profiles, which combine a schedule with limits, a budget and a classifier.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Limits, Schedule, SharedSchedule};

use super::RetryPolicy;
#[cfg(feature = "http")]
use crate::call::outcome::ProfileClassifier;
use crate::call::protocol::Protocol;

/// A profile of a library's or service's retries: a schedule, limits, and optionally a budget and a classifier.
///
/// The [`profile`](crate::profile) module contains well-known profiles. To write your own, start with
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
    /// The maximum number of attempts, including the first. `u32::MAX` means no limit.
    pub max_attempts: u32,
    /// The maximum time from the start of a call to the start of its last attempt. `None` means no limit.
    pub max_elapsed: Option<Duration>,
    /// The maximum delay that a server may ask for.
    pub max_server_delay: Duration,
    /// The classifier for a service's failures over HTTP, which takes precedence over the default rules of
    /// [`Http`](crate::Http). With `None`, only the default rules apply.
    ///
    /// It is called for errors, and for responses that the default rules classify as failures. The policy's own
    /// classifiers and `on_status` verdicts take precedence over it. It has no effect on other protocols.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub classifier: Option<ProfileClassifier>,
    /// The budget, which clones of the profile share. With `None`, the policy keeps its own budget.
    pub budget: Option<RetryBudget>,
}

impl<S> Profile<S> {
    /// Creates a profile with this schedule, without a classifier or budget. The limits are the defaults: 3 attempts,
    /// 30 s, and a server delay of at most 60 s.
    pub fn new(schedule: S) -> Self {
        let Limits { max_attempts, max_elapsed, max_server_delay, .. } = Limits::default();
        Self {
            schedule,
            max_attempts,
            max_elapsed,
            max_server_delay,
            #[cfg(feature = "http")]
            classifier: None,
            budget: None,
        }
    }

    /// Erases the schedule's type, for profiles that are chosen at run time.
    pub fn shared(self) -> Profile<SharedSchedule>
    where
        S: Schedule + Send + Sync + 'static,
        S::Delays: Send + 'static,
    {
        self.map(SharedSchedule::new)
    }

    /// Replaces the schedule with one that `change` derives from it, for example with a cap or jitter.
    pub fn map<T>(self, change: impl FnOnce(S) -> T) -> Profile<T> {
        Profile {
            schedule: change(self.schedule),
            max_attempts: self.max_attempts,
            max_elapsed: self.max_elapsed,
            max_server_delay: self.max_server_delay,
            #[cfg(feature = "http")]
            classifier: self.classifier,
            budget: self.budget,
        }
    }
}

/// Profiles, which require a policy with a [`RetryBudget`], as every new policy has. Set any other kind of budget
/// afterwards.
impl<P, Backoff, Mode> RetryPolicy<P, Backoff, RetryBudget, Mode>
where
    P: Protocol + Clone,
    Backoff: Schedule + Clone,
{
    /// Sets a profile's schedule, limits and classifier, and its budget if it has one.
    ///
    /// Limits and a budget that are set on the policy itself, before or after the profile, take precedence. The
    /// schedule is always replaced. If the old schedule was set with [`backoff`](Self::backoff),
    /// [`validate`](Self::validate) returns a warning.
    pub fn profile<S: Schedule>(self, profile: Profile<S>) -> RetryPolicy<P, S, RetryBudget, Mode> {
        let mut settings = self.into_settings().map(|_, budget| (profile.schedule, budget));
        settings.chosen.backoff_replaced = settings.chosen.backoff;
        if !settings.chosen.max_attempts {
            settings.limits.max_attempts = profile.max_attempts;
        }
        if !settings.chosen.max_elapsed {
            settings.limits.max_elapsed = profile.max_elapsed;
        }
        if !settings.chosen.max_server_delay {
            settings.limits.max_server_delay = profile.max_server_delay;
        }
        #[cfg(feature = "http")]
        {
            settings.chosen.classifier_unused = !settings.protocol.set_profile_classifier(profile.classifier);
        }
        if let Some(budget) = profile.budget.filter(|_| !settings.chosen.budget) {
            settings.budget = budget;
        }
        RetryPolicy::of(settings)
    }
}
