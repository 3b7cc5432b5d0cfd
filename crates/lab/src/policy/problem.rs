//! Something that is wrong, or unusual, in a text, and where.

use std::fmt;

use serde::Serialize;

/// All that is wrong with a text, in the order of its lines.
pub(crate) type Problems = Vec<Problem>;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Problem {
    /// From 1; `None` where it is not known.
    pub(crate) line: Option<usize>,
    /// Where in the document, as in `orders.cap`; empty for all of it.
    pub(crate) path: String,
    /// Completes the sentence that begins with the path.
    pub(crate) reason: String,
}

impl Problem {
    /// With the name of the file before it.
    pub(crate) fn in_file(&self, file: &dyn fmt::Display) -> String {
        match self.line {
            Some(line) => format!("{file}:{line}: {self}"),
            None => format!("{file}: {self}"),
        }
    }

    /// As compilers write it: with the file and how grave it is.
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
