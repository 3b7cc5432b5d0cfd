//! The error for a file that cannot be used.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::reader::Problem;

/// The maximum size of a file: 1 MiB.
pub(crate) const MOST_BYTES: u64 = 1024 * 1024;

/// The maximum number of problems listed in an error's text.
const MOST_LISTED: usize = 50;

/// The error for a policy file that cannot be used. It lists every problem in the file.
#[derive(Debug, Clone)]
pub struct PolicyFileError {
    path: PathBuf,
    kind: ErrorKind,
}

#[derive(Debug, Clone)]
pub(crate) enum ErrorKind {
    /// The file cannot be read.
    Io(Arc<io::Error>),
    /// The path refers to a directory, a pipe or a device.
    NotAFile,
    /// The file is longer than [`MOST_BYTES`].
    TooLong,
    Empty,
    /// The file has a byte on this line that is not valid UTF-8.
    NotText(usize),
    /// The crate feature for the file's format is off.
    NoFormat,
    /// The content of the file has problems.
    Problems(Vec<Problem>),
    /// A callback of the program panicked, so some layers may not have the new policies.
    Panicked,
    /// The thread that watches the file cannot be started.
    NoWatch(Arc<io::Error>),
}

impl PolicyFileError {
    pub(crate) fn new(path: &Path, kind: ErrorKind) -> Self {
        Self { path: path.to_owned(), kind }
    }

    /// Returns the problems in the file's content. The list is empty if the file could not be read.
    pub fn problems(&self) -> &[Problem] {
        match &self.kind {
            ErrorKind::Problems(problems) => problems,
            _ => &[],
        }
    }

    /// Returns the file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// The output lists at most 50 problems, each on its own line with the file name.
impl fmt::Display for PolicyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            ErrorKind::Io(error) => write!(f, "{path}: cannot be read: {error}"),
            ErrorKind::NotAFile => write!(f, "{path}: is not a file"),
            ErrorKind::TooLong => write!(f, "{path}: is longer than 1 MiB (1048576 bytes)"),
            ErrorKind::Empty => write!(f, "{path}: is empty"),
            ErrorKind::NotText(line) => write!(f, "{path}:{line}: is not UTF-8"),
            ErrorKind::NoFormat => write!(f, "{path}: needs the feature `json` or `toml` of reattempt-policy-file"),
            ErrorKind::Panicked => {
                write!(f, "{path}: is not in force in every layer, as the program's function panicked")
            }
            ErrorKind::NoWatch(error) => write!(f, "{path}: cannot be watched: {error}"),
            ErrorKind::Problems(problems) => {
                for (number, problem) in problems.iter().take(MOST_LISTED).enumerate() {
                    write!(f, "{}{}", if number == 0 { "" } else { "\n" }, problem.in_file(&path))?;
                }
                match problems.len().saturating_sub(MOST_LISTED) {
                    0 => Ok(()),
                    more => write!(f, "\n{path}: and {more} more problems"),
                }
            }
        }
    }
}

impl Error for PolicyFileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.kind {
            ErrorKind::Io(error) | ErrorKind::NoWatch(error) => Some(&**error),
            _ => None,
        }
    }
}
