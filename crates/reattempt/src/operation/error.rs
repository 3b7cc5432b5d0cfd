//! The error of a retried operation that does not succeed.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use reattempt_core::StopReason;

use crate::call::redact::Redacted;
use crate::call::report::Report;

/// The operation's last error, why there was no further attempt, and what happened on the way.
///
/// Displays the reason, the attempts and the time; the last error is its
/// [`source`](std::error::Error::source), where it is an [`Error`] itself. The debug output shows the last
/// error as well, without the user information and the query of any URL in it.
#[derive(Clone, PartialEq, Eq)]
pub struct RetryError<E> {
    error: E,
    // Boxed: the error is part of every result, and a report is only looked at after a failure.
    summary: Box<Summary>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Summary {
    report: Report,
    elapsed: Duration,
}

impl<E> RetryError<E> {
    pub(super) fn new(error: E, report: Report, elapsed: Duration) -> Self {
        Self { error, summary: Box::new(Summary { report, elapsed }) }
    }

    /// The error of the last attempt.
    pub fn error(&self) -> &E {
        &self.error
    }

    /// The error of the last attempt.
    pub fn into_error(self) -> E {
        self.error
    }

    /// Why no further attempt was made.
    pub fn stop_reason(&self) -> StopReason {
        self.summary.report.stop_reason()
    }

    /// The attempts made.
    pub fn attempts(&self) -> u32 {
        self.summary.report.retries().saturating_add(1)
    }

    /// The time from the first attempt, or from the moment it first had to wait for something, to
    /// the end of the last.
    pub fn elapsed(&self) -> Duration {
        self.summary.elapsed
    }

    /// Returns the report of all attempts.
    pub fn report(&self) -> &Report {
        &self.summary.report
    }
}

impl<E: fmt::Debug> fmt::Debug for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryError")
            .field("error", &Redacted(&self.error))
            .field("report", &self.summary.report)
            .field("elapsed", &self.summary.elapsed)
            .finish()
    }
}

impl<E> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let attempts = self.attempts();
        let s = if attempts == 1 { "" } else { "s" };
        let (elapsed, reason) = (self.elapsed(), self.stop_reason());
        write!(f, "gave up after {attempts} attempt{s} in {elapsed:?}: {reason}")
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
