//! The classification of a whole response head.

use std::time::SystemTime;

use http::{HeaderMap, StatusCode};
use reattempt_core::{Classification, Verdict};

use crate::{Hints, verdict_of_status};

/// Returns the classification of a response: the [verdict of its status](verdict_of_status), with the default
/// [`Hints`] in its headers.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, StatusCode};
/// # use reattempt_core::ServerHint;
/// # use reattempt_http::classification_of_response;
///
/// let mut headers = HeaderMap::new();
/// headers.insert("retry-after", "3".parse()?);
/// let classification = classification_of_response(StatusCode::SERVICE_UNAVAILABLE, &headers);
/// assert_eq!(classification.hint, ServerHint::After(Duration::from_secs(3)));
/// # Ok::<(), http::header::InvalidHeaderValue>(())
/// ```
#[must_use]
pub fn classification_of_response(status: StatusCode, headers: &HeaderMap) -> Classification {
    match verdict_of_status(status) {
        Verdict::Success => Verdict::Success.into(),
        verdict => Hints::default().read(headers, SystemTime::now).classification(verdict, status),
    }
}
