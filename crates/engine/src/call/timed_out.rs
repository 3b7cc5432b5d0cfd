//! The error of a call that was ended by a time limit.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, StatusCode};
use reattempt_core::Rounded;

use crate::call::errors::BoxError;
use crate::call::redact::Names;

/// The error of a call that was ended by a time limit.
///
/// Policies with an [attempt timeout](crate::RetryPolicy::attempt_timeout) or [boxed
/// errors](crate::RetryPolicy::boxed_errors) return it as a `BoxError`, and so do [guard
/// layers][guardlayer]. The error contains the limit and the head of the last refused response, if any.
///
/// ```
/// use reattempt::TimedOut;
/// use tower::BoxError;
///
/// fn is_timeout(error: &BoxError) -> bool {
///     error.is::<TimedOut>()
/// }
/// ```
///
/// [guardlayer]: https://docs.rs/reattempt/latest/reattempt/guard/struct.GuardLayer.html
#[derive(Debug)]
pub struct TimedOut {
    pub(crate) limit: TimeLimit,
    pub(crate) after: Duration,
    pub(crate) endpoint: Option<Arc<str>>,
    pub(crate) refused: Option<RefusedResponse>,
    pub(crate) source: Option<BoxError>,
    /// `true` if the attempt waited for the caller's body.
    pub(crate) uploading: bool,
}

/// The time limit that ended a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeLimit {
    /// The time limit of one attempt.
    Attempt,
    /// The call's deadline.
    Deadline,
    /// The limit on elapsed time, reached before the service was ready for another attempt.
    Elapsed,
}

/// The head of a response that was dropped for a retry.
///
/// Its debug output contains only header names, because header values may be credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct RefusedResponse {
    /// The status of the response.
    pub status: StatusCode,
    /// The headers of the response.
    pub headers: HeaderMap,
}

impl TimedOut {
    /// Creates the error of an attempt or a call without a refused response.
    #[doc(hidden)]
    pub fn new(limit: TimeLimit, after: Duration) -> Self {
        Self { limit, after, endpoint: None, refused: None, source: None, uploading: false }
    }

    /// Sets the server, and `uploading` to `true` if the attempt waited for the caller's body.
    #[doc(hidden)]
    pub fn at(self, endpoint: Option<Arc<str>>, uploading: bool) -> Self {
        Self { endpoint, uploading, ..self }
    }

    /// Sets the protocol's own error for this limit.
    #[doc(hidden)]
    pub fn caused_by(self, source: Option<BoxError>) -> Self {
        Self { source, ..self }
    }

    /// Returns the limit that ended the call.
    pub fn limit(&self) -> TimeLimit {
        self.limit
    }

    /// Returns the time since the start of the interrupted attempt. If no attempt was in flight, or the call is hedged,
    /// this is the time since the start of the call. If a guard layer did not send the call, it is the time that the
    /// call waited.
    pub fn after(&self) -> Duration {
        self.after
    }

    /// Returns the name of the [endpoint][endpoints] of the interrupted attempt. Returns `None` if there is no
    /// set of endpoints, if no attempt was in flight, or if the call is hedged.
    ///
    /// [endpoints]: https://docs.rs/reattempt/latest/reattempt/endpoints/index.html
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// Returns `true` if the attempt waited for the request body that the caller streams. The server is then not at
    /// fault. This is known only if a guard or a set of endpoints is inside the retry or hedge layer.
    pub fn is_upload_pending(&self) -> bool {
        self.uploading
    }

    /// Returns the head of the call's last refused response, if any.
    pub fn refused(&self) -> Option<&RefusedResponse> {
        self.refused.as_ref()
    }
}

impl fmt::Debug for RefusedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedResponse").field("status", &self.status).field("headers", &Names(&self.headers)).finish()
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let after = Rounded(self.after);
        match self.limit {
            TimeLimit::Attempt => write!(f, "the attempt timed out after {after}")?,
            TimeLimit::Deadline if self.after.is_zero() => f.write_str("the deadline had passed")?,
            TimeLimit::Deadline => write!(f, "the deadline passed after {after}")?,
            TimeLimit::Elapsed => write!(f, "no retry could be sent within {after}")?,
        }
        if self.uploading {
            f.write_str(" while the request body was pending")?;
        }
        if let Some(endpoint) = &self.endpoint {
            write!(f, " ({endpoint})")?;
        }
        match &self.refused {
            Some(refused) => write!(f, "; the last answer was {}", refused.status),
            None => Ok(()),
        }
    }
}

impl Error for TimedOut {
    /// Returns the protocol's own error for this limit, if any.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
