//! How the laboratory ends: what stands on the last line, and the exit code.
//!
//! 0: done, and nothing is wrong. 1: done, and what was looked at is not right. 2: it could not be
//! done. A reader of the output that has gone away is no error, as with any tool in a pipe.

use std::fmt;
use std::io;
use std::process::ExitCode;

use reattempt::ConfigError;

/// What a command found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing to object to.
    Fine,
    /// Something that the caller should look at.
    Problems,
}

impl From<Found> for ExitCode {
    fn from(found: Found) -> Self {
        ExitCode::from(match found {
            Found::Fine => 0,
            Found::Problems => 1,
        })
    }
}

/// Why a command could not do its work.
#[derive(Debug)]
pub(crate) enum LabError {
    /// Whoever read the output has gone away.
    NobodyReads,
    /// What could not be done, and why.
    Message(String),
}

/// The style of the word "error", as clap writes it.
pub(crate) fn style() -> clap::builder::styling::Style {
    *clap::builder::Styles::styled().get_error()
}

impl LabError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::Message(message.to_string())
    }
}

/// Errors of writing to standard output; for all other errors of input and output, say with
/// [`LabError::new`] what was tried.
impl From<io::Error> for LabError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::NobodyReads,
            _ => Self::Message(format!("the output cannot be written: {error}")),
        }
    }
}

impl From<serde_json::Error> for LabError {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<ConfigError> for LabError {
    fn from(error: ConfigError) -> Self {
        Self::new(error)
    }
}
