//! Signs that a service below follows redirects: what it fails with then is no proof that a request was
//! not processed, for an earlier hop may have carried it out.

use std::error::Error;

use http::Extensions;

/// Returns `true` if the response comes of tower-http's `FollowRedirect`, which reqwest is built on.
///
/// That layer leaves its `RequestUri` in each response, whether it has followed a redirect or not. A
/// form that redirects to itself has the same URI at both hops, so the URI is no sign.
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

/// Returns `true` if the error comes of a reqwest client.
pub(super) fn followed_by_client_of(error: &(dyn Error + 'static)) -> bool {
    #[cfg(feature = "reqwest")]
    if crate::call::errors::causes(error).any(|error| error.is::<reqwest::Error>()) {
        return true;
    }
    let _ = error;
    false
}
