//! The outcome of an attempt, as the input of classifiers.

use std::error::Error;
use std::fmt;

use http::{HeaderMap, Method, StatusCode};
use reattempt_core::Classification;

use super::errors;
use super::redact::{Names, Redacted};
use super::request_view::RequestView;

/// The classifier of a [`Profile`](crate::profile::Profile).
pub type ProfileClassifier = fn(Outcome<'_>) -> Option<Classification>;

/// The outcome of an attempt, for classifiers: the head of a response, or an error.
///
/// Its debug output contains header names without values. URLs in errors are shown without userinfo and query.
///
/// A classifier can be tested without a server:
///
/// ```
/// use http::{HeaderMap, Request, StatusCode};
/// use reattempt::classify::{Outcome, RequestView};
///
/// let search = Request::get("http://one.example/search?q=rust").body(())?;
/// let headers = HeaderMap::new();
/// let outcome = Outcome::of_response(StatusCode::NOT_FOUND, &headers)
///     .with_request(RequestView::from(&search));
/// assert_eq!(outcome.status(), Some(StatusCode::NOT_FOUND));
/// assert_eq!(outcome.request().map(|request| request.path()), Some("/search"));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct Outcome<'a> {
    end: End<'a>,
    request: Option<RequestView<'a>>,
    method: Option<&'a Method>,
    body: Option<&'a [u8]>,
}

#[derive(Clone, Copy)]
enum End<'a> {
    Response { status: StatusCode, headers: &'a HeaderMap },
    Error(&'a (dyn Error + 'static)),
}

impl<'a> Outcome<'a> {
    /// Creates the outcome of an attempt that ended with this response head.
    pub const fn of_response(status: StatusCode, headers: &'a HeaderMap) -> Self {
        Self { end: End::Response { status, headers }, request: None, method: None, body: None }
    }

    /// Creates the outcome of an attempt that ended with this error.
    pub const fn of_error(error: &'a (dyn Error + 'static)) -> Self {
        Self { end: End::Error(error), request: None, method: None, body: None }
    }

    /// Adds the request, if it was saved.
    #[must_use]
    pub fn with_request(self, request: impl Into<Option<RequestView<'a>>>) -> Self {
        Self { request: request.into(), ..self }
    }

    /// Adds the method of the request, for layers that do not save requests.
    #[must_use]
    pub const fn with_method(self, method: &'a Method) -> Self {
        Self { method: Some(method), ..self }
    }

    /// Adds the whole body of the response.
    #[must_use]
    pub const fn with_body(self, body: &'a [u8]) -> Self {
        Self { body: Some(body), ..self }
    }

    /// Returns the whole body of the response, in the rules of a [`PeekBodyLayer`][layer]. In all other classifiers, it
    /// is `None`.
    ///
    /// [layer]: https://docs.rs/reattempt/latest/reattempt/struct.PeekBodyLayer.html
    pub fn body(&self) -> Option<&'a [u8]> {
        self.body
    }

    /// Returns the method of the request, such as `GET`, if it is known: in the rules of a `PeekBodyLayer`, and where
    /// the [request](Self::request) is.
    pub fn method(&self) -> Option<&'a str> {
        self.method.map(Method::as_str).or_else(|| self.request.map(|request| request.method()))
    }

    /// Returns the status of the response, if there is one.
    pub fn status(&self) -> Option<StatusCode> {
        match self.end {
            End::Response { status, .. } => Some(status),
            End::Error(_) => None,
        }
    }

    /// Returns the headers of the response, if there is one.
    pub fn headers(&self) -> Option<&'a HeaderMap> {
        match self.end {
            End::Response { headers, .. } => Some(headers),
            End::Error(_) => None,
        }
    }

    /// Returns the error of the inner service, if there is one. Its causes are in its `source()` chain.
    pub fn error(&self) -> Option<&'a (dyn Error + 'static)> {
        match self.end {
            End::Response { .. } => None,
            End::Error(error) => Some(error),
        }
    }

    /// Returns the first error of type `T` in the error's source chain.
    pub fn find_error<T: Error + 'static>(&self) -> Option<&'a T> {
        errors::causes(self.error()?).find_map(|error| error.downcast_ref())
    }

    /// Returns the caller's request, including a generated idempotency key, but without changes from a `before_attempt`
    /// hook.
    ///
    /// Returns `None` if the request was not saved, because the call cannot be retried or the layer does not save
    /// requests (guards, fallbacks). Also returns `None` when trailers are classified: the request's head may contain
    /// credentials, so it is not kept that long.
    pub fn request(&self) -> Option<RequestView<'a>> {
        self.request
    }
}

impl fmt::Debug for Outcome<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            End::Response { status, headers } => {
                f.debug_struct("Response").field("status", &status).field("headers", &Names(headers)).finish()
            }
            End::Error(error) => f.debug_tuple("Error").field(&Redacted(&error)).finish(),
        }
    }
}
