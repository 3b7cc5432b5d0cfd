//! The validator that identifies a version of the content (RFC 9110 §8.8).

use std::time::{Duration, SystemTime};

use http::header::{DATE, ETAG, LAST_MODIFIED};
use http::{HeaderMap, HeaderValue};

use super::only;

/// The minimum age of content for its date to be a strong validator. Dates have a resolution of one second, so newer
/// content may have changed twice within one. The value from RFC 7232 §2.2.2 allows for clock skew.
const SETTLED: Duration = Duration::from_secs(60);

/// 1980-01-02 as a Unix time. Reproducible builds give every version the same earlier date.
const GENUINE: Duration = Duration::from_secs(315_619_200);

/// A strong validator, which is equal only for identical bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Validator {
    ETag(HeaderValue),
    Date(HeaderValue),
}

impl Validator {
    /// Returns the strong validator in a response head, if there is one. If there is an `ETag`, no other validator may
    /// be used (RFC 9110 §13.1.5).
    pub(super) fn of(response: &HeaderMap) -> Option<Self> {
        if response.contains_key(ETAG) {
            let etag = only(response, &ETAG)?;
            return is_strong(etag.as_bytes()).then(|| Self::ETag(etag.clone()));
        }
        let modified = only(response, &LAST_MODIFIED)?;
        let time = date(modified)?;
        let age = date(only(response, &DATE)?)?.duration_since(time).ok()?;
        (age >= SETTLED && is_genuine(time)).then(|| Self::Date(modified.clone()))
    }

    /// Returns the value for `If-Range`.
    pub(super) const fn value(&self) -> &HeaderValue {
        match self {
            Self::ETag(value) | Self::Date(value) => value,
        }
    }

    /// Returns the strong validator that was stored earlier. A date was checked at that time.
    pub(super) fn from_value(value: &HeaderValue) -> Option<Self> {
        if is_strong(value.as_bytes()) {
            return Some(Self::ETag(value.clone()));
        }
        is_genuine(date(value)?).then(|| Self::Date(value.clone()))
    }

    /// Returns `true` if a partial response belongs to the same version of the content. A response to `If-Range` with a
    /// date need not repeat the date (RFC 9110 §15.3.7).
    pub(super) fn is_in(&self, response: &HeaderMap) -> bool {
        let omits_date = !response.contains_key(ETAG) && !response.contains_key(LAST_MODIFIED);
        matches!(self, Self::Date(_)) && omits_date || self.is_repeated_in(response)
    }

    /// Returns `true` if a response repeats the validator.
    pub(super) fn is_repeated_in(&self, response: &HeaderMap) -> bool {
        match self {
            Self::ETag(etag) => only(response, &ETAG) == Some(etag),
            Self::Date(modified) => !response.contains_key(ETAG) && only(response, &LAST_MODIFIED) == Some(modified),
        }
    }
}

/// Returns `true` for a quoted tag without `W/`. An empty tag is valid, but servers send it for every version.
fn is_strong(etag: &[u8]) -> bool {
    let tag = etag.strip_prefix(b"\"").and_then(|tag| tag.strip_suffix(b"\""));
    tag.is_some_and(|tag| !tag.is_empty() && tag.iter().all(|&byte| byte > b' ' && byte != b'"' && byte != 0x7f))
}

fn date(value: &HeaderValue) -> Option<SystemTime> {
    httpdate::parse_http_date(value.to_str().ok()?).ok()
}

fn is_genuine(time: SystemTime) -> bool {
    time >= SystemTime::UNIX_EPOCH + GENUINE
}
