//! A problem in a text, with its place.

use std::fmt;

use serde::Serialize;

/// All problems of a text, in the order of its lines.
pub(crate) type Problems = Vec<Problem>;

/// One problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// The line, from 1; `None` if it is unknown.
    pub(crate) line: Option<usize>,
    /// The path in the document, such as `orders.cap`; empty for the whole document.
    pub(crate) path: String,
    /// The rest of the sentence that begins with the path.
    pub(crate) reason: String,
}

impl Problem {
    /// Formats the problem after the name of the file.
    pub(crate) fn in_file(&self, file: &dyn fmt::Display) -> String {
        match self.line {
            Some(line) => format!("{file}:{line}: {self}"),
            None => format!("{file}: {self}"),
        }
    }

    /// Formats the problem as compilers do: with the file and the severity.
    pub(crate) fn in_file_as(&self, file: &dyn fmt::Display, grave: &str) -> String {
        match self.line {
            Some(line) => format!("{file}:{line}: {grave}: {self}"),
            None => format!("{file}: {grave}: {self}"),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{} ", self.path)?;
        }
        f.write_str(&self.reason)
    }
}
