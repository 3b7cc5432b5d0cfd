//! The recommended ranges of values in policies.

use crate::policy::Problem;
use crate::text;

/// The recommended range of one kind of value; durations in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Recommended {
    least: f64,
    most: f64,
    usual: &'static str,
    duration: bool,
    /// The text that follows the value.
    of: &'static str,
}

const fn times(least: f64, most: f64, usual: &'static str) -> Recommended {
    Recommended { least, most, usual, duration: true, of: "" }
}

const fn numbers(least: f64, most: f64, usual: &'static str) -> Recommended {
    Recommended { least, most, usual, duration: false, of: "" }
}

pub(super) const ATTEMPTS: Recommended = numbers(2.0, 10.0, "3 to 5");
pub(super) const BASE: Recommended = times(0.010, 1.0, "100 ms");
pub(super) const CAP: Recommended = times(1.0, 60.0, "5 s");
pub(super) const DEADLINE: Recommended = times(1.0, 3600.0, "5 s to 30 s");
pub(super) const FACTOR: Recommended = numbers(1.5, 3.0, "2");
pub(super) const BUDGET: Recommended = numbers(0.01, 0.5, "0.1");
pub(super) const BURST: Recommended =
    Recommended { of: " times the rate", ..numbers(1.0, 5.0, "2") };

impl Recommended {
    /// Returns a warning if the value lies outside of the range.
    pub(super) fn warning(
        &self,
        line: Option<usize>,
        path: impl Into<String>,
        value: f64,
    ) -> Option<Problem> {
        if (self.least..=self.most).contains(&value) {
            return None;
        }
        let shown = |value: f64| match self.duration {
            true => text::brief(text::seconds(value)),
            false => value.to_string(),
        };
        let reason = format!(
            "is {}{} (recommended: {} to {}, usually {})",
            shown(value),
            self.of,
            shown(self.least),
            shown(self.most),
            self.usual
        );
        Some(Problem { line, path: path.into(), reason })
    }
}
