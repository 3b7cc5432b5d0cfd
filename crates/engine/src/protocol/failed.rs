//! The failure that a fallback replaces, the marker on the fallback response, and a backup's error.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::response::Parts;
use tower::BoxError;

use crate::call::redact::{Names, Redacted, redacted};
use crate::call::report::Report;

/// The outcome of a failed call, after all retries.
///
/// `Debug` and `Display` omit header values and the URL's query, because these may be credentials.
pub struct Failed(#[doc(hidden)] pub Result<Parts, BoxError>);

impl Failed {
    /// Returns the head of the last response, or the error.
    pub fn outcome(&self) -> Result<&Parts, &(dyn Error + Send + Sync + 'static)> {
        self.0.as_ref().map_err(|error| &**error)
    }

    /// Returns the retry layer's report, if the call ended with a response.
    pub fn report(&self) -> Option<&Report> {
        self.0.as_ref().ok()?.extensions.get()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(head) => write!(f, "{}", head.status),
            Err(error) => f.write_str(&redacted(&error.to_string())),
        }
    }
}

impl fmt::Debug for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(head) => {
                let mut fields = f.debug_struct("Response");
                fields.field("status", &head.status).field("headers", &Names(&head.headers));
                fields.finish()
            }
            Err(error) => f.debug_tuple("Error").field(&Redacted(error)).finish(),
        }
    }
}

/// The marker in the extensions of a response from a fallback or a backup. The marker contains the original outcome.
///
/// Whatever its status, a response with this marker does not show whether the server processed the request. An outer
/// retry layer or fallback therefore does not resend a request that must not be processed twice.
///
/// ```
/// use http::Response;
/// use reattempt::fallback::FellBack;
///
/// fn log<B>(response: &Response<B>) {
///     if let Some(mark) = response.extensions().get::<FellBack>() {
///         eprintln!("a fallback was used: {}", mark.failed());
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct FellBack(#[doc(hidden)] pub Arc<Failed>);

impl FellBack {
    /// Returns the original outcome.
    pub fn failed(&self) -> &Failed {
        &self.0
    }
}

/// The error of a call whose backup failed without a response. This error contains the original outcome.
///
/// Its source is the backup's error. Like a [`FellBack`] response, it does not show whether the server processed the
/// request. The error's texts contain no credentials.
pub struct BackupFailed {
    #[doc(hidden)]
    pub failed: Failed,
    #[doc(hidden)]
    pub source: BoxError,
}

impl BackupFailed {
    /// Returns the original outcome.
    pub fn failed(&self) -> &Failed {
        &self.failed
    }
}

impl fmt::Display for BackupFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the backup failed after {}", self.failed)
    }
}

impl fmt::Debug for BackupFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("BackupFailed");
        fields.field("failed", &self.failed).field("source", &Redacted(&self.source)).finish()
    }
}

impl Error for BackupFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}
