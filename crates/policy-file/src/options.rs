//! Options for loading a policy file.

use std::fmt;
use std::time::Duration;

use reattempt::PeekBodyLayer;
use reattempt::policies::TableBudget;

use crate::event::PolicyFileEvent;
use crate::state::FleetBudget;

/// An observer of a file's events.
pub(crate) type Observer = Box<dyn Fn(&PolicyFileEvent) + Send + Sync>;

/// Options for loading a policy file.
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
    pub(crate) bodies: Option<PeekBodyLayer>,
}

impl PolicyFileOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self { interval: Some(Duration::from_millis(250)), observer: None, fleet: None, bodies: None }
    }

    /// Sets the interval between two reads of the file. Default: 250 ms.
    ///
    /// A change takes effect once two consecutive reads have found the same content. This takes at most two intervals.
    /// `never_retry = true` takes effect at the first read. The event follows with the change.
    ///
    /// The minimum interval is 10 ms.
    pub fn interval(self, interval: Duration) -> Self {
        Self { interval: Some(interval.max(Duration::from_millis(10))), ..self }
    }

    /// Turns the watch off. The file is then reread only when [`PolicyFile::reload`](crate::PolicyFile::reload) is
    /// called.
    pub fn unwatched(self) -> Self {
        Self { interval: None, ..self }
    }

    /// Sets a callback for changes and for unusable files. The same content is not reported twice. Default: none.
    ///
    /// The callback runs on the watch thread, on the caller's thread in
    /// [`PolicyFile::reload`](crate::PolicyFile::reload), or on the thread that looks up a `dns` name.
    pub fn observe(self, observer: impl Fn(&PolicyFileEvent) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Box::new(observer)), ..self }
    }

    /// Sets the function that returns the budget for a policy with `budget = "fleet"`. Many processes share such a
    /// budget. The function is called with the policy's name, and not again while the policy keeps this kind of budget.
    ///
    /// Without this function, a file with such a policy is rejected. The crate `reattempt-redis` provides a store for
    /// shared budgets.
    pub fn fleet_budget(self, budget: impl Fn(&str) -> TableBudget + Send + Sync + 'static) -> Self {
        Self { fleet: Some(Box::new(budget)), ..self }
    }

    /// Sets the layer that reads response bodies, whose settings a file's `[[bodies]]` change. Its rules, its memory
    /// and its defaults apply to all sections. A function set with [`PeekBodyLayer::choose`] is replaced.
    ///
    /// Put [`PolicyFile::body_layer`](crate::PolicyFile::body_layer) inside the file's other layer. Without this
    /// option, a file with `[[bodies]]` is rejected.
    pub fn bodies(self, layer: PeekBodyLayer) -> Self {
        Self { bodies: Some(layer), ..self }
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
