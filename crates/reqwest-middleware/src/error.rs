//! The error of a call, with its report.

use std::error::Error;
use std::fmt;

use reattempt::Report;
use reattempt::error::Redacted;

use super::api::Error as MiddlewareError;

/// An equivalent of tower's `BoxError`.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// The error of a call sent through a [`ReattemptMiddleware`](super::ReattemptMiddleware).
///
/// The error is inside the chain's `Error::Middleware`. Its source is the last attempt's error: a
/// `reqwest::Error`, or the error of a later middleware. If a limit ended the call, the source is the limit's error,
/// such as [`TimedOut`](reattempt::TimedOut) or [`Refused`](reattempt::guard::Refused).
///
/// ```
/// use reattempt_reqwest_middleware::CallError;
///
/// fn describe(error: &reqwest_middleware::Error) -> String {
///     match CallError::of(error) {
///         Some(call) if call.reqwest().is_some_and(reqwest::Error::is_connect) => "no connection".to_owned(),
///         Some(call) => call.report().map_or_else(|| call.to_string(), ToString::to_string),
///         None => error.to_string(), // a middleware before it
///     }
/// }
/// ```
pub struct CallError {
    cause: Cause,
    report: Option<Report>,
}

/// The cause of a call's failure.
enum Cause {
    Attempt(ChainError),
    /// The error of a limit or a guard in the layers.
    Layer(BoxError),
}

impl CallError {
    pub(crate) fn new(error: BoxError, report: Option<Report>) -> Self {
        let cause = match error.downcast() {
            Ok(error) => Cause::Attempt(*error),
            Err(error) => Cause::Layer(error),
        };
        Self { cause, report }
    }

    fn cause(&self) -> &(dyn Error + 'static) {
        match &self.cause {
            Cause::Attempt(error) => error.inner(),
            Cause::Layer(error) => &**error,
        }
    }

    /// Returns the call's error inside a middleware error, or `None` if another middleware failed.
    pub fn of(error: &MiddlewareError) -> Option<&Self> {
        match error {
            MiddlewareError::Middleware(error) => error.downcast_ref(),
            MiddlewareError::Reqwest(_) => None,
        }
    }

    /// Returns the report, with each attempt and the reason why the call ended.
    ///
    /// Returns `None` if the call's options contain a report slot, or if no layer in the stack creates reports.
    pub fn report(&self) -> Option<&Report> {
        self.report.as_ref()
    }

    /// Returns the client's error, or `None` if the last attempt failed for another reason.
    pub fn reqwest(&self) -> Option<&reqwest::Error> {
        std::iter::successors(self.source(), |&error| error.source()).find_map(|error| error.downcast_ref())
    }
}

/// The output omits the report and the backtrace of the chain's error.
impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallError").field("source", &Redacted(self.cause())).finish_non_exhaustive()
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.report {
            Some(report) => write!(f, "the call failed after {} retries: {}", report.retries(), report.stop_reason()),
            None => f.write_str("the call failed"),
        }
    }
}

impl Error for CallError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.cause())
    }
}

impl From<CallError> for MiddlewareError {
    fn from(error: CallError) -> Self {
        MiddlewareError::middleware(error)
    }
}

/// The error of an attempt in the form that layers get. Its text and source are those of the client's or a later
/// middleware's error.
///
/// The chain's own error type does not have that source, so the layers would not recognise a failed connection.
pub struct ChainError(MiddlewareError);

impl From<MiddlewareError> for ChainError {
    fn from(error: MiddlewareError) -> Self {
        ChainError(error)
    }
}

impl fmt::Debug for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ChainError").field(&Redacted(&self.0)).finish()
    }
}

impl fmt::Display for ChainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for ChainError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.inner())
    }
}

impl ChainError {
    fn inner(&self) -> &(dyn Error + 'static) {
        match &self.0 {
            MiddlewareError::Reqwest(error) => error,
            MiddlewareError::Middleware(error) => &**error,
        }
    }
}
