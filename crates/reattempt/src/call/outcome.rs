//! The outcome of an attempt, as a classifier sees it.

use std::error::Error;
use std::fmt;

use http::{HeaderMap, StatusCode};

use super::errors;
use super::redact::{Names, Redacted};

/// The end of an attempt, as a classifier sees it.
///
/// Its debug output contains only the names of the headers. It contains URLs of errors without user
/// information and query.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Outcome<'a> {
    /// The head of a response.
    Response {
        /// Its status.
        status: StatusCode,
        /// Its headers.
        headers: &'a HeaderMap,
    },
    /// An error of the inner service; its causes are in its `source()` chain.
    Error(&'a (dyn Error + 'static)),
}

impl<'a> Outcome<'a> {
    /// The status, when there is a response.
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Outcome::Response { status, .. } => Some(*status),
            Outcome::Error(_) => None,
        }
    }

    /// The headers, when there is a response.
    pub fn headers(&self) -> Option<&'a HeaderMap> {
        match self {
            Outcome::Response { headers, .. } => Some(headers),
            Outcome::Error(_) => None,
        }
    }

    /// The first error of type `T` in the chain of causes.
    pub fn find_error<T: Error + 'static>(&self) -> Option<&'a T> {
        match self {
            Outcome::Error(error) => errors::causes(*error).find_map(|error| error.downcast_ref()),
            Outcome::Response { .. } => None,
        }
    }
}

impl fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Response { status, headers } => f
                .debug_struct("Response")
                .field("status", status)
                .field("headers", &Names(headers))
                .finish(),
            Outcome::Error(error) => f.debug_tuple("Error").field(&Redacted(error)).finish(),
        }
    }
}
