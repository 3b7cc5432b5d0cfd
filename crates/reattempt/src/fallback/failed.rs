//! The failure that a fallback replaces, and the mark of its response.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use http::response::Parts;
use tower::BoxError;

use crate::call::report::Report;

/// The outcome of a call that has failed for good.
#[derive(Debug)]
pub struct Failed(pub(super) Result<Parts, BoxError>);

impl Failed {
    /// Returns the head of the last response, or the error.
    pub fn outcome(&self) -> Result<&Parts, &(dyn Error + Send + Sync + 'static)> {
        self.0.as_ref().map_err(|error| &**error)
    }

    /// Returns the report of the retry layer, if the call ended with a response.
    pub fn report(&self) -> Option<&Report> {
        self.0.as_ref().ok()?.extensions.get()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok(head) => write!(f, "{}", head.status),
            Err(error) => write!(f, "{error}"),
        }
    }
}

/// The mark in the extensions of a fallback's response. It contains the call's own outcome.
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
pub struct FellBack(pub(super) Arc<Failed>);

impl FellBack {
    /// Returns the call's own outcome.
    pub fn failed(&self) -> &Failed {
        &self.0
    }
}
