//! Limits on the attempts and the time of a call.

use alloc::vec::Vec;
use core::time::Duration;

use crate::snapshot::Part;
use crate::{Recommended, Warning};

/// The limits of one call.
///
/// ```
/// use reattempt::retry::Limits;
/// # mod reattempt { pub use reattempt_core as retry; }
///
/// let mut limits = Limits::default();
/// assert_eq!(limits.max_attempts, 3);
/// limits.max_attempts = 4;
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of attempts, including the first; 0 and 1 both turn retries off. Default: 3, because a fourth
    /// attempt rarely succeeds where three failed.
    pub max_attempts: u32,
    /// The maximum time from the start of the call to the start of its last attempt; `None` means no limit. A retry
    /// whose delay would end later is not sent. Default: 30 s, because most callers have given up by then.
    pub max_elapsed: Option<Duration>,
    /// The longest delay that a server may request. If it requests more, the call is not retried. Default: 60 s, but
    /// the default `max_elapsed` of 30 s takes effect first.
    pub max_server_delay: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_attempts: 3, max_elapsed: Some(Duration::from_secs(30)), max_server_delay: Duration::from_secs(60) }
    }
}

impl Limits {
    /// Adds the limits to a policy's part of a snapshot, except those that are off.
    #[doc(hidden)]
    pub fn inspect(&self, part: Part) -> Part {
        part.field_if("max_attempts", Some(self.max_attempts).filter(|attempts| *attempts < u32::MAX))
            .field_if("max_elapsed", self.max_elapsed)
            .field_if("max_server_delay", Some(self.max_server_delay).filter(|delay| *delay < Duration::MAX))
    }

    /// Returns a warning for each limit outside its recommended range. A limit of one attempt gives no warning, because
    /// it is assumed to be deliberate.
    pub fn validate(&self) -> Vec<Warning> {
        let attempts = f64::from(self.max_attempts.max(2));
        let elapsed = self.max_elapsed;
        let warnings = [
            Recommended::ATTEMPTS.number("max_attempts", attempts),
            elapsed.and_then(|elapsed| Recommended::DEADLINE.time("max_elapsed", elapsed)),
        ];
        warnings.into_iter().flatten().collect()
    }
}
