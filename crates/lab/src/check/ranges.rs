//! The warning of a value outside of the library's recommended range, with its place in the file.

use reattempt::error::{Recommended, Warning};

use crate::policy::Problem;
use crate::text;

/// Returns a warning if a time in seconds lies outside of the range.
pub(super) fn time(range: Recommended, seconds: f64) -> Option<Warning> {
    let warning = range.number("", seconds)?;
    Some(Warning::new("", text::brief(text::seconds(seconds)), warning.recommended()))
}

/// Returns the problem of a value at that place.
pub(super) fn at(line: Option<usize>, path: impl Into<String>, warning: Option<Warning>) -> Option<Problem> {
    let warning = warning?;
    let reason = format!("is {} (recommended: {})", warning.value(), warning.recommended());
    Some(Problem::new(line, path, reason))
}
