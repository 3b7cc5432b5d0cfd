//! The error of a time limit that interrupted a call.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use crate::call::errors::BoxError;
use crate::call::redact::Names;

/// A time limit ended an attempt that was under way.
///
/// Found inside the boxed error of a policy with an
/// [attempt timeout](crate::RetryPolicy::attempt_timeout); it names the limit and holds the head of
/// the last refused response, if there was one. Its body is gone.
#[derive(Debug)]
pub struct TimedOut {
    pub(crate) limit: TimeLimit,
    pub(crate) after: Duration,
    pub(crate) refused: Option<RefusedResponse>,
    pub(crate) source: Option<BoxError>,
}

/// The limit that was hit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TimeLimit {
    /// The time allowed for one attempt.
    Attempt,
    /// The call's deadline.
    Deadline,
    /// The limit on elapsed time, which passed before the service was ready for another attempt.
    Elapsed,
}

/// The head of a response that was thrown away for a retry.
///
/// Its debug output has the names of the headers only, for their values may be credentials.
#[derive(Clone)]
#[non_exhaustive]
pub struct RefusedResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
}

impl TimedOut {
    /// Which limit was hit.
    pub fn limit(&self) -> TimeLimit {
        self.limit
    }

    /// Returns how long the attempt had been under way; for a limit that passed while no attempt was, how
    /// long the call had been.
    pub fn after(&self) -> Duration {
        self.after
    }

    /// The last response of this call that was refused, if any attempt got one.
    pub fn refused(&self) -> Option<&RefusedResponse> {
        self.refused.as_ref()
    }
}

impl fmt::Debug for RefusedResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusedResponse")
            .field("status", &self.status)
            .field("headers", &Names(&self.headers))
            .finish()
    }
}

impl fmt::Display for TimedOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limit {
            TimeLimit::Attempt => write!(f, "the attempt timed out after {:?}", self.after)?,
            TimeLimit::Deadline => write!(f, "the deadline passed after {:?}", self.after)?,
            TimeLimit::Elapsed => write!(f, "no retry could be sent within {:?}", self.after)?,
        }
        match &self.refused {
            Some(refused) => write!(f, "; the last answer was {}", refused.status),
            None => Ok(()),
        }
    }
}

impl Error for TimedOut {
    /// Returns the protocol's own error for it, where there is one.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}
