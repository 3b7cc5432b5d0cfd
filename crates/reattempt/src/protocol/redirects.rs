//! Signs that a service below follows redirects. No failure then proves that a request was not processed, because an
//! earlier hop may have processed it.

use std::error::Error;

use http::Extensions;

/// Returns `true` if the response comes from tower-http's `FollowRedirect`, which reqwest uses.
///
/// That layer leaves its `RequestUri` in each response, even if it followed no redirect. Its value is not compared,
/// because a form that redirects to itself has the same URI at both hops.
pub(super) fn followed_by_service_of(extensions: &Extensions) -> bool {
    #[cfg(feature = "tower-http")]
    if extensions.get::<tower_http::follow_redirect::RequestUri>().is_some() {
        return true;
    }
    #[cfg(feature = "reqwest")]
    if extensions.get::<tower_http_of_reqwest::follow_redirect::RequestUri>().is_some() {
        return true;
    }
    let _ = extensions;
    false
}

/// Returns `true` if the error comes from a reqwest client.
pub(super) fn followed_by_client_of(error: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "reqwest")]
    if crate::call::errors::causes(error).any(|error| error.is::<reqwest::Error>()) {
        return true;
    }
    let _ = error;
    false
}
