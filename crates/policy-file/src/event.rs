//! The events of a policy file.

use std::fmt;
use std::io;
use std::sync::Arc;

use crate::error::PolicyFileError;

/// A change to the current policies, or a failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PolicyFileEvent {
    /// A changed file was read, and its policies are now used.
    #[non_exhaustive]
    Reloaded {
        /// `true` if retries are turned off.
        never_retry: bool,
    },
    /// A changed file cannot be used. The previous policies are kept.
    #[non_exhaustive]
    Refused {
        /// The error, with every problem in the file.
        error: PolicyFileError,
        /// `true` if retries are turned off. `never_retry` applies even if the file has problems elsewhere.
        never_retry: bool,
    },
    /// The look-up of an endpoints section's `dns` name failed. Its previous servers stay in use. Only the first of
    /// several consecutive failures is reported.
    #[non_exhaustive]
    ResolveFailed {
        /// The host name with its port.
        name: String,
        /// The resolver's error.
        error: Arc<io::Error>,
    },
}

impl fmt::Display for PolicyFileEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off = |never| if never { "; nothing is retried (never_retry)" } else { "" };
        match self {
            Self::ResolveFailed { name, error } => {
                write!(f, "{name:?} cannot be looked up, and its former servers stay: {error}")
            }
            Self::Reloaded { never_retry } => write!(f, "the policy file was read again{}", off(*never_retry)),
            Self::Refused { error, never_retry } => {
                write!(
                    f,
                    "the policy file is not in force, and the former policies stay{}:\n{error}",
                    off(*never_retry)
                )
            }
        }
    }
}
