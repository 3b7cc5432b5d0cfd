//! The report of a call: each attempt with its outcome, and the reason why the call ended.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reattempt_core::{Failure, Proof, Rounded, StopReason};
#[cfg(feature = "http")]
use reattempt_replay::UploadError;
use smallvec::SmallVec;

use super::causes::Cause;

/// The report of one call, attempt by attempt.
///
/// The report is in the extensions of a response if an earlier attempt failed, or if the response is a retryable
/// failure. For errors, and for responses without extensions, set a [`ReportSlot`] in the call's
/// [options](crate::CallOptions), or use an [observer](crate::observe::Observer).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    pub(crate) attempts: Attempts,
    pub(crate) omitted: u32,
    /// The number of attempts that were sent, not counting replacements.
    #[doc(hidden)]
    pub sent: u32,
    /// The number of the attempt whose outcome was returned.
    pub(crate) winner: Option<u32>,
    pub(crate) stop: StopReason,
    /// The names of the protocol's codes, by number.
    pub(crate) code_names: &'static [&'static str],
    /// The limits on the saved bytes of one streamed body and of all bodies, if the body was not saved.
    pub(crate) body_limits: Option<(usize, usize)>,
    /// The error of a body that could not be opened again.
    pub(crate) unopened: Option<Unopened>,
}

/// The error of a body that could not be opened again. Two are equal if their texts are.
#[derive(Debug, Clone)]
pub(crate) struct Unopened(pub(crate) Arc<dyn Error + Send + Sync>);

impl PartialEq for Unopened {
    fn eq(&self, other: &Self) -> bool {
        self.0.to_string() == other.0.to_string()
    }
}

impl Eq for Unopened {}

/// The attempts of a report. Two are stored inline, because most retried calls succeed with their second attempt.
pub(crate) type Attempts = SmallVec<[AttemptReport; 2]>;

/// One attempt of a [`Report`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AttemptReport {
    /// The attempt's number, from 1.
    pub number: u32,
    /// `true` if this attempt replaced an unprocessed attempt with the same number.
    pub replacement: bool,
    /// The name of the [endpoint][endpoints] that the attempt was sent to, if the client has a set of endpoints.
    ///
    /// [endpoints]: https://docs.rs/reattempt/latest/reattempt/endpoints/index.html
    pub endpoint: Option<Arc<str>>,
    /// The time from the start of the call to the end of the attempt. A call starts when its future first returns
    /// `Pending`.
    pub ended: Duration,
    /// The outcome of the attempt.
    pub outcome: AttemptOutcome,
    /// The delay before the next attempt, or `None` for the last one.
    pub delay: Option<Duration>,
    /// The proof that this attempt was not processed, if the request was repeated only because of it. If the server
    /// sent `REFUSED_STREAM` after it had done the work, it did the work twice. Always `None` in a hedge layer.
    pub repeated_by: Option<Proof>,
}

/// The outcome of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The attempt succeeded.
    Succeeded,
    /// The attempt failed, and a retry might succeed. Or the response was not the result yet, and the failure is of the
    /// kind [`Pending`](reattempt_core::FailureKind::Pending).
    Failed {
        /// The kind of failure and the protocol's code.
        failure: Failure,
        /// The error and its causes, truncated to 1 KiB, or `None` if there was a response.
        error: Option<Box<str>>,
        /// The cause that other calls may have failed of, such as a lost connection, if the failure may have one.
        cause: Option<Cause>,
    },
    /// The attempt failed permanently, so a retry would fail too.
    PermanentFailure {
        /// The protocol's code, if the response head has one. For HTTP, it is the status.
        code: Option<u16>,
        /// The error and its causes, truncated to 1 KiB, or `None` if there was a response.
        error: Option<Box<str>>,
    },
    /// The attempt was cancelled, because another attempt ended the hedged call. The server may have processed it.
    Cancelled,
}

impl Report {
    /// Creates the report of a call without attempts.
    pub(crate) fn of_nothing(stop: StopReason) -> Self {
        let (attempts, sent, winner) = (Attempts::new(), 0, None);
        Self { attempts, omitted: 0, sent, winner, stop, code_names: &[], body_limits: None, unopened: None }
    }

    /// Returns the report in a response, or `None` if only one attempt was sent and it succeeded or failed permanently.
    ///
    /// ```
    /// use reattempt::Report;
    ///
    /// fn attempts<B>(response: &http::Response<B>) -> usize {
    ///     Report::of(response).map_or(1, |report| report.attempts().len())
    /// }
    /// ```
    #[cfg(feature = "http")]
    pub fn of<R: Reported>(response: &R) -> Option<&Self> {
        response.report()
    }

    /// Returns the attempts in the order in which they ended. In a hedged call, the cancelled attempts precede the
    /// winner. If there were more than 64 attempts, only the first 32 and the last 32 are listed.
    pub fn attempts(&self) -> &[AttemptReport] {
        &self.attempts
    }

    /// Returns the reason why the call ended.
    pub fn stop_reason(&self) -> StopReason {
        self.stop
    }

    /// Returns the error of the request body if it could not be opened again for a retry, so that the call ended with
    /// its last outcome and [`StopReason::BodyNotOpened`].
    #[cfg(feature = "http")]
    pub fn upload_error(&self) -> Option<&UploadError> {
        self.unopened.as_ref()?.0.downcast_ref()
    }

    /// Returns the number of retries or hedges, that is, attempts after the first.
    pub fn retries(&self) -> u32 {
        self.sent.saturating_sub(1)
    }

    /// Returns the number, from 1, of the attempt whose outcome the call returned. Returns `None` if the call's outcome
    /// did not come from an attempt. If all attempts failed, the winner is the one that ended last.
    ///
    /// ```
    /// use reattempt::Report;
    ///
    /// /// Returns `true` if a hedge was faster than the first attempt.
    /// fn was_won_by_hedge<B>(response: &http::Response<B>) -> bool {
    ///     Report::of(response).and_then(Report::winner).is_some_and(|winner| winner > 1)
    /// }
    /// ```
    pub fn winner(&self) -> Option<u32> {
        self.winner
    }

    /// Returns the number of listed attempts that replaced an unprocessed attempt. They are not counted as retries.
    pub fn replacements(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.replacement).count()
    }

    /// Returns the number of attempts omitted from [`attempts`](Self::attempts).
    pub fn omitted(&self) -> u32 {
        self.omitted
    }

    /// Returns the sum of the listed delays.
    pub fn total_delay(&self) -> Duration {
        self.attempts.iter().filter_map(|attempt| attempt.delay).fold(Duration::ZERO, Duration::saturating_add)
    }
}

impl fmt::Display for Report {
    /// Writes one line for each attempt, then the stop reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for attempt in &self.attempts {
            let again = if attempt.replacement { " again" } else { "" };
            let (number, ended) = (attempt.number, attempt.ended);
            let endpoint = At(attempt.endpoint.as_deref());
            write!(f, "attempt {number}{again}{endpoint} at {}: ", Rounded(ended))?;
            attempt.outcome.write(f, self.code_names)?;
            if let Some(delay) = attempt.delay {
                write!(f, ", next in {}", Rounded(delay))?;
            }
            if attempt.repeated_by == Some(Proof::RefusedStream) {
                write!(f, ", repeated only because {}", Proof::RefusedStream)?;
            }
            writeln!(f)?;
        }
        if self.omitted > 0 {
            writeln!(f, "({} attempts in the middle are left out)", self.omitted)?;
        }
        write!(f, "stopped: {}", self.stop)?;
        if let Some((one, all)) = self.body_limits {
            write!(f, " (ReplayLimits::per_call is {one} bytes, ReplayLimits::memory {all} bytes; ")?;
            write!(f, "an UploadBody of any length can be opened again)")?;
        }
        match &self.unopened {
            Some(Unopened(error)) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

/// The display form of an attempt's endpoint, which is empty if there is none.
pub(crate) struct At<'a>(pub(crate) Option<&'a str>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |endpoint| write!(f, " to {endpoint}"))
    }
}

impl AttemptOutcome {
    /// Writes the outcome, with the name of its code if any.
    fn write(&self, f: &mut fmt::Formatter<'_>, code_names: &[&str]) -> fmt::Result {
        let name = |code: u16| code_names.get(usize::from(code));
        let error = match self {
            AttemptOutcome::Succeeded => return f.write_str("succeeded"),
            AttemptOutcome::Cancelled => return f.write_str("cancelled"),
            AttemptOutcome::Failed { failure, error, cause } => {
                match failure.code().and_then(name) {
                    Some(name) => write!(f, "{} ({name})", failure.kind())?,
                    None => write!(f, "{failure}")?,
                }
                if let Some(cause) = cause.as_ref().filter(|cause| cause.calls() > 1) {
                    write!(f, ", {cause}")?;
                }
                error
            }
            AttemptOutcome::PermanentFailure { code, error } => {
                f.write_str("permanent failure")?;
                match (code.and_then(name), code) {
                    (Some(name), _) => write!(f, " ({name})")?,
                    (None, Some(code)) => write!(f, " ({code})")?,
                    (None, None) => {}
                }
                error
            }
        };
        match error {
            Some(error) => write!(f, ": {error}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for AttemptOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, &[])
    }
}

/// A response that may contain a report: that of the crate `http`, that of a client's crate behind its feature, or your
/// own type around one.
#[cfg(feature = "http")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` contains no report",
    note = "`Report::of` takes the response of a call: an `http::Response<B>`, that of reqwest 0.13 with the feature `reqwest` of reattempt, or that of another client with its feature",
    note = "for a call of reqwest 0.12, or one that may end with an error, pass a `reattempt::report::ReportSlot` in its options: `client.with_options(CallOptions::new().report_to(&slot))`, or the options in the extensions of its request"
)]
pub trait Reported {
    /// Returns the report in the response, if any.
    fn report(&self) -> Option<&Report>;
}

#[cfg(feature = "http")]
impl<B> Reported for http::Response<B> {
    fn report(&self) -> Option<&Report> {
        self.extensions().get()
    }
}

#[cfg(feature = "reqwest")]
impl Reported for reqwest::Response {
    fn report(&self) -> Option<&Report> {
        self.extensions().get()
    }
}

/// A slot that receives the [`Report`] of a call, whether the call ends with a response or an error.
///
/// ```
/// use reattempt::CallOptions;
/// use reattempt::report::ReportSlot;
///
/// let slot = ReportSlot::default();
/// let options = CallOptions::new().report_to(&slot);
/// // … send a request with these options in its extensions, then:
/// assert!(slot.take().is_none(), "no call has ended yet");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReportSlot(Arc<Mutex<Option<Report>>>);

impl ReportSlot {
    /// Takes the report of the most recently ended call.
    pub fn take(&self) -> Option<Report> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    #[doc(hidden)]
    pub fn put(&self, report: Report) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}
