//! The options with which a file is loaded.

use std::fmt;
use std::time::Duration;

use reattempt::policies::TableBudget;

use crate::event::PolicyFileEvent;
use crate::state::FleetBudget;

/// An observer of a file's events.
pub(crate) type Observer = Box<dyn Fn(&PolicyFileEvent) + Send + Sync>;

/// The options with which a policy file is loaded.
///
/// ```no_run
/// use reattempt_policy_file::PolicyFileOptions;
///
/// # fn main() -> Result<(), reattempt_policy_file::PolicyFileError> {
/// let policies = PolicyFileOptions::new()
///     .observe(|event| eprintln!("{event}"))
///     .load("policies.toml")?;
/// # Ok(())
/// # }
/// ```
#[must_use = "the file is read by `load`"]
pub struct PolicyFileOptions {
    pub(crate) interval: Option<Duration>,
    pub(crate) observer: Option<Observer>,
    pub(crate) fleet: Option<FleetBudget>,
}

impl PolicyFileOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self { interval: Some(Duration::from_millis(250)), observer: None, fleet: None }
    }

    /// Sets the time between two looks at the file. Default: 250 ms.
    ///
    /// A change is in force once two looks in a row have found it, so after at most two intervals. An interval below
    /// 10 ms counts as 10 ms.
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval: Some(interval.max(Duration::from_millis(10))), ..self }
    }

    /// Turns the watch off. Only [`PolicyFile::reload`](crate::PolicyFile::reload) then reads the file again.
    pub fn unwatched(self) -> Self {
        Self { interval: None, ..self }
    }

    /// Sets the observer of changes and of files that cannot be used. Each content of the file is reported once.
    /// Default: none.
    ///
    /// It runs on the thread of the watch, on that of [`PolicyFile::reload`](crate::PolicyFile::reload), or on that of
    /// the look-ups of a `dns` name.
    pub fn observe(self, observer: impl Fn(&PolicyFileEvent) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Supplies the budget of policies with `budget = "fleet"`, which many processes share. The function gets the
    /// policy's name, and is called once for as long as the policy keeps this kind of budget.
    ///
    /// Without it, a file with such a policy is refused. The crate `reattempt-redis` has a store for such budgets.
    pub fn fleet_budget(self, budget: impl Fn(&str) -> TableBudget + Send + Sync + 'static) -> Self {
        Self { fleet: Some(Box::new(budget)), ..self }
    }
}

impl Default for PolicyFileOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for PolicyFileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyFileOptions").field("interval", &self.interval).finish_non_exhaustive()
    }
}
