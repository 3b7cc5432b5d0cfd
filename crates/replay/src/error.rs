//! The errors of a replayable body's readers.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "h2")]
use std::sync::LazyLock;

/// The error type of a caller's body and of each reader.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error that ended a [`ReplayBody`](crate::ReplayBody) early.
///
/// The client receives it boxed and usually wraps it in its own error, so look for this type in the
/// [`source`](Error::source) chain. With the feature `h2`, the source of `Superseded` and `NotKept` is an `h2::Error`,
/// so that hyper resets the upload's stream with CANCEL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReplayError {
    /// Another reader [cancelled](crate::ReplayBody::cancel_others) this one.
    Superseded,
    /// The body outgrew its [limits](crate::ReplayLimits), so frames that this reader had not returned yet were
    /// dropped.
    NotKept,
    /// The caller's body failed or panicked. Each reader returns this error at the same position in the body. The
    /// original error is this error's source.
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

/// Returns the error that marks an upload as cancelled. hyper resets the stream with the reason of the first
/// `h2::Error` in the chain, or with INTERNAL_ERROR if there is none.
#[cfg(feature = "h2")]
fn cancelled() -> Option<&'static (dyn Error + 'static)> {
    static CANCELLED: LazyLock<h2::Error> = LazyLock::new(|| h2::Reason::CANCEL.into());
    Some(&*CANCELLED)
}

#[cfg(not(feature = "h2"))]
fn cancelled() -> Option<&'static (dyn Error + 'static)> {
    None
}
