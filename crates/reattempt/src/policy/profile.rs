//! A schedule with its limits, budget and classifier, as one value for a policy.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Limits, Schedule, SharedSchedule};

use super::RetryPolicy;
#[cfg(feature = "http")]
use crate::call::outcome::ProfileClassifier;
use crate::call::protocol::Protocol;

/// The retry behaviour of a library or service, as one value: a schedule, limits, and optionally a budget and a
/// classifier.
///
/// The [`profile`](crate::profile) module has the well-known profiles. To write another one, start with
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
    /// The maximum number of attempts, including the first; `u32::MAX` for no limit.
    pub max_attempts: u32,
    /// The maximum time from the start of a call to the start of its last attempt; `None` for no limit.
    pub max_elapsed: Option<Duration>,
    /// The maximum delay that a server may ask for.
    pub max_server_delay: Duration,
    /// The classifier for a service's failures over HTTP, which has precedence over the table of [`Http`](crate::Http).
    /// With `None`, the table decides.
    ///
    /// It is called for errors, and for responses that the table classifies as failures. The policy's own classifiers
    /// and `on_status` verdicts have precedence over it. It has no effect on other protocols.
    #[cfg(feature = "http")]
    #[cfg_attr(docsrs, doc(cfg(feature = "http")))]
    pub classifier: Option<ProfileClassifier>,
    /// The budget, which a profile's clones share. With `None`, the policy keeps its own.
    pub budget: Option<RetryBudget>,
}

impl<S> Profile<S> {
    /// Creates a profile with this schedule, the default limits (3 attempts, 30 s, at most 60 s for the server), no
    /// classifier and no budget.
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

    /// Returns the profile with another schedule, which `change` derives from the current one, for example with a cap
    /// or jitter.
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

/// Profiles. They require a policy with a [`RetryBudget`], as every new policy has. Set another kind of budget
/// afterwards.
impl<P, Backoff, Mode> RetryPolicy<P, Backoff, RetryBudget, Mode>
where
    P: Protocol + Clone,
    Backoff: Schedule + Clone,
{
    /// Sets a profile's schedule, limits and classifier, and its budget if it has one.
    ///
    /// Limits and a budget that were set on the policy have precedence, whether they were set before or after. The
    /// schedule is always replaced. If the old one was set with [`backoff`](Self::backoff),
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
