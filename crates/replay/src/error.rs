//! The errors with which a reader of a replayable body ends.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "h2")]
use std::sync::LazyLock;

/// The error of a caller's body, and of each reader.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error that ended a [`ReplayBody`](crate::ReplayBody) early.
///
/// The client that sends the body gets it as a boxed error, and usually wraps it in an error of its own. Look
/// for it along the chain of [`source`](Error::source)s. With the feature `h2`, an upload that was
/// superseded or not kept has an `h2::Error` as its source, so that its stream is reset with CANCEL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReplayError {
    /// Another reader took the body over
    /// ([`cancel_others`](crate::ReplayBody::cancel_others)).
    Superseded,
    /// The frames that this reader had not returned yet were dropped, because the body outgrew its
    /// [limits](crate::ReplayLimits).
    NotKept,
    /// The caller's own body failed. Each reader gets this error at the same place. The original error is
    /// its source.
    Source(Arc<dyn Error + Send + Sync>),
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ReplayError::Superseded => "another attempt has taken the request body over",
            ReplayError::NotKept => "the request body was not kept and cannot be read again",
            ReplayError::Source(_) => "the request body failed",
        })
    }
}

impl Error for ReplayError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            ReplayError::Source(error) => Some(&**error),
            ReplayError::Superseded | ReplayError::NotKept => cancelled(),
        }
    }
}

/// Returns the cause of an upload that this side cancelled. hyper resets the stream with the reason of the first
/// `h2::Error` in the chain, and with INTERNAL_ERROR if there is none.
#[cfg(feature = "h2")]
fn cancelled() -> Option<&'static (dyn Error + 'static)> {
    static CANCELLED: LazyLock<h2::Error> = LazyLock::new(|| h2::Reason::CANCEL.into());
    Some(&*CANCELLED)
}

#[cfg(not(feature = "h2"))]
fn cancelled() -> Option<&'static (dyn Error + 'static)> {
    None
}
