//! A problem in a document, with its position.

use std::fmt;

/// All problems in a document, in line order.
pub type Problems = Vec<Problem>;

/// A problem in a policy file: its position, the invalid value and the allowed values.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The line, counted from 1, or `None` if it is unknown.
    pub line: Option<usize>,
    /// The path in the document, such as `orders.cap`. It is empty if the problem concerns the whole document.
    pub path: String,
    /// The rest of the message, which continues the sentence after the path.
    pub reason: String,
}

impl Problem {
    /// Creates a problem.
    pub fn new(line: Option<usize>, path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { line, path: path.into(), reason: reason.into() }
    }

    /// Formats the problem with the file name in front: `policies.toml:3: orders.cap must be …`.
    pub fn in_file(&self, file: &dyn fmt::Display) -> String {
        match self.line {
            Some(line) => format!("{file}:{line}: {self}"),
            None => format!("{file}: {self}"),
        }
    }

    /// Formats the problem in the style of compilers, with the file name and the severity.
    pub fn in_file_as(&self, file: &dyn fmt::Display, grave: &str) -> String {
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
