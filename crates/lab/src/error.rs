//! The result of a command: the last line that is printed, and the exit code.
//!
//! 0: done without a problem. 1: done, and the command found a problem. 2: the command failed. A closed output pipe is
//! no error, as for any tool in a pipe.

use std::fmt;
use std::io;
use std::process::ExitCode;

use reattempt::error::ConfigError;

use crate::picture::PictureError;

/// The result of a command that did its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// No problem was found.
    Fine,
    /// The input has errors, or the call failed.
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

/// A failure of the command itself.
#[derive(Debug)]
pub(crate) enum LabError {
    /// The reader of the output has closed the pipe.
    PipeClosed,
    /// A message that names the failed action and its reason.
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

/// Converts errors of writing to standard output. For every other error of input or output, use
/// [`LabError::new`] and name the failed action.
impl From<io::Error> for LabError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Message(format!("the output cannot be written: {error}")),
        }
    }
}

impl From<serde_json::Error> for LabError {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<PictureError> for LabError {
    fn from(error: PictureError) -> Self {
        Self::new(error)
    }
}

impl From<ConfigError> for LabError {
    fn from(error: ConfigError) -> Self {
        Self::new(error)
    }
}
