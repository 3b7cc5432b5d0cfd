//! The rule that determines, from its method and headers, whether a request is repeatable.

use http::{HeaderMap, Method};
use reattempt_replay::SavedHead;

use crate::idempotency::IDEMPOTENCY_KEY;

/// Returns `true` if it is harmless for the server to process this request more than once.
///
/// The repeatable methods are GET, HEAD, OPTIONS, TRACE, PUT and DELETE, which are idempotent (RFC 9110 §9.2.2), and
/// QUERY, which is safe. Requests with a non-blank [`Idempotency-Key`](IDEMPOTENCY_KEY) are repeatable too. Extension
/// methods such as PROPFIND are not, even if they are idempotent.
///
/// ```
/// use http::{HeaderMap, Method};
/// # use reattempt_http::{IDEMPOTENCY_KEY, is_repeatable, new_idempotency_key};
///
/// let mut headers = HeaderMap::new();
/// assert!(is_repeatable(&Method::PUT, &headers));
/// assert!(!is_repeatable(&Method::POST, &headers));
/// headers.insert(IDEMPOTENCY_KEY, new_idempotency_key());
/// assert!(is_repeatable(&Method::POST, &headers));
/// ```
#[must_use]
#[inline]
pub fn is_repeatable(method: &Method, headers: &HeaderMap) -> bool {
    method.is_idempotent() || has_key(headers.get_all(IDEMPOTENCY_KEY).iter().map(|key| key.as_bytes()))
}

/// Returns `true` if a request with this head [is repeatable](is_repeatable).
#[must_use]
pub fn is_head_repeatable(head: &SavedHead) -> bool {
    head.method().is_some_and(|method| method.is_idempotent()) || has_key(head.values(&IDEMPOTENCY_KEY))
}

/// Returns `true` if any of these header values is an idempotency key.
fn has_key<'a>(mut values: impl Iterator<Item = &'a [u8]>) -> bool {
    values.any(|key| !key.trim_ascii().is_empty())
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Request};

    use super::*;

    #[test]
    fn by_method() {
        let none = HeaderMap::new();
        let extension = Method::from_bytes(b"PROPFIND").unwrap();
        for (method, expected) in [
            (Method::GET, true),
            (Method::HEAD, true),
            (Method::OPTIONS, true),
            (Method::TRACE, true),
            (Method::QUERY, true),
            (Method::PUT, true),
            (Method::DELETE, true),
            (Method::POST, false),
            (Method::PATCH, false),
            (Method::CONNECT, false),
            (extension, false),
        ] {
            assert_eq!(is_repeatable(&method, &none), expected, "{method}");
        }
    }

    #[test]
    fn by_key() {
        for (key, expected) in [(&b"\"a\""[..], true), (b"a", true), (b"\xff", true), (b"", false), (b"  ", false)] {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_bytes(key).unwrap());
            assert_eq!(is_repeatable(&Method::POST, &headers), expected, "{key:?}");
        }
    }

    #[test]
    fn saved_head_is_as_repeatable() {
        let keyed = |method: Method, key: &'static str, sensitive| {
            let mut key = HeaderValue::from_static(key);
            key.set_sensitive(sensitive);
            Request::builder().method(method).header(IDEMPOTENCY_KEY, key).body(()).unwrap()
        };
        for (request, expected) in [
            (Request::put("/").body(()).unwrap(), true),
            (Request::post("/").body(()).unwrap(), false),
            (keyed(Method::POST, "a", false), true),
            (keyed(Method::POST, "a", true), true),
            (keyed(Method::PATCH, "  ", false), false),
            (keyed(Method::DELETE, "", false), true),
            (keyed(Method::QUERY, "", false), true),
        ] {
            assert_eq!(is_head_repeatable(&SavedHead::new(&request)), expected, "{request:?}");
            assert_eq!(is_repeatable(request.method(), request.headers()), expected);
        }
    }
}
