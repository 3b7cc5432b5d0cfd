//! The error of a retried operation that failed.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use reattempt_core::{Rounded, StopReason};

use crate::call::redact::Redacted;
use crate::call::report::Report;

/// The error of a retried operation: the last attempt's error, the stop reason, and the report of all attempts.
///
/// The `Display` text contains the reason, the number of attempts and the elapsed time. If the last error is an
/// [`Error`], it is the [`source`](std::error::Error::source). The `Debug` output also contains the last error, without
/// the userinfo and query of its URLs.
#[derive(Clone, PartialEq, Eq)]
pub struct RetryError<E> {
    error: E,
    // Boxed to keep every `Result` small. The report is read only after a failure.
    report: Box<Report>,
}

impl<E> RetryError<E> {
    pub(super) fn new(error: E, report: Report) -> Self {
        Self { error, report: Box::new(report) }
    }

    /// Returns the last attempt's error.
    pub fn error(&self) -> &E {
        &self.error
    }

    /// Converts this error into the last attempt's error.
    #[doc(alias = "into_inner")]
    pub fn into_error(self) -> E {
        self.error
    }

    /// Returns the reason why the operation was not retried again.
    pub fn stop_reason(&self) -> StopReason {
        self.report.stop_reason()
    }

    /// Returns the number of attempts.
    pub fn attempts(&self) -> u32 {
        self.report.retries().saturating_add(1)
    }

    /// Returns the time from the start of the call to the end of its last attempt. An asynchronous call starts when its
    /// first attempt first returns `Pending`; a blocking call starts with its first attempt.
    pub fn elapsed(&self) -> Duration {
        self.report.attempts().last().map_or(Duration::ZERO, |last| last.ended)
    }

    /// Returns the report of all attempts.
    pub fn report(&self) -> &Report {
        &self.report
    }
}

impl<E: fmt::Debug> fmt::Debug for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryError")
            .field("error", &Redacted(&self.error))
            .field("report", &self.report)
            .field("elapsed", &self.elapsed())
            .finish()
    }
}

impl<E> fmt::Display for RetryError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (attempts, reason) = (self.attempts(), self.stop_reason());
        let elapsed = Rounded(self.elapsed());
        let s = if attempts == 1 { "" } else { "s" };
        match reason {
            StopReason::Permanent => {
                write!(f, "failed on attempt {attempts} in {elapsed}: {reason}")
            }
            _ => write!(f, "gave up after {attempts} attempt{s} in {elapsed}: {reason}"),
        }
    }
}

impl<E: Error + 'static> Error for RetryError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}
