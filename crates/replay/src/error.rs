//! What a reader of a replayable body can end with.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
#[cfg(feature = "h2")]
use std::sync::LazyLock;

/// The error of a caller's body, and of each reader.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Why a [`ReplayBody`](crate::ReplayBody) ended before its time.
///
/// It reaches whoever sent the body as a boxed error, usually inside an error of the client; look
/// for it along the chain of [`source`](Error::source)s. With the feature `h2`, an upload that was
/// superseded or not kept has an `h2::Error` as its source, so that its stream is reset with CANCEL.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ReplayError {
    /// Another reader took the body over
    /// ([`cancel_others`](crate::ReplayBody::cancel_others)).
    Superseded,
    /// The frames that this reader had yet to see were given up, because the body outgrew the
    /// [limits](crate::ReplayLimits) on what is kept.
    NotKept,
    /// The caller's own body failed. Every reader that gets as far gets this error, and the
    /// original is its source.
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

/// The cause of an upload that this side gave up. hyper resets the stream with the reason of the first
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
