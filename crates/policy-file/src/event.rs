//! The events of a file.

use std::fmt;

use crate::error::PolicyFileError;

/// A change of the policies in force, or its failure.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum PolicyFileEvent {
    /// A changed file is in force.
    #[non_exhaustive]
    Reloaded {
        /// `true` if nothing is retried.
        never_retry: bool,
    },
    /// A changed file cannot be used. The policies in force stay.
    #[non_exhaustive]
    Refused {
        /// Every problem of the file.
        error: PolicyFileError,
        /// `true` if nothing is retried. The file turns retries off if it says so, even if it has problems elsewhere.
        never_retry: bool,
    },
}

impl fmt::Display for PolicyFileEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let off = |never| if never { "; nothing is retried (never_retry)" } else { "" };
        match self {
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
