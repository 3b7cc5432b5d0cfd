//! The requests that may run side by side, by protocol.

use http::{HeaderMap, Method};

use crate::protocol::{Http, Protocol};

/// A protocol that decides which requests of type `Request` may be hedged.
pub trait Hedgeable<Request>: Protocol {
    /// Returns `true` if this request may be hedged. With `idempotent`, an idempotent method is enough.
    #[doc(hidden)]
    fn may_hedge(&self, request: &Request, idempotent: bool) -> bool;
}

impl<B> Hedgeable<http::Request<B>> for Http {
    fn may_hedge(&self, request: &http::Request<B>, idempotent: bool) -> bool {
        by_method(request.method(), request.headers(), idempotent)
    }
}

#[cfg(feature = "reqwest")]
impl Hedgeable<reqwest::Request> for Http {
    fn may_hedge(&self, request: &reqwest::Request, idempotent: bool) -> bool {
        by_method(request.method(), request.headers(), idempotent)
    }
}

/// Returns `true` for QUERY and the safe methods of RFC 9110 §9.2.1, and with `idempotent` for the methods of §9.2.2.
/// A request for an upgrade is not hedged, because it would begin a conversation twice. An idempotency key makes no
/// request hedgeable: while the first request with it is under way, servers refuse a second one.
fn by_method(method: &Method, headers: &HeaderMap, idempotent: bool) -> bool {
    let allowed = method.is_safe() || (idempotent && method.is_idempotent());
    allowed && !headers.contains_key(http::header::UPGRADE)
}

#[cfg(test)]
mod tests {
    use super::*;

    // HG-14
    #[test]
    fn safe_methods_hedge_idempotent_on_request() {
        let none = HeaderMap::new();
        let rows = [
            ("GET", true, true),
            ("HEAD", true, true),
            ("OPTIONS", true, true),
            ("TRACE", true, true),
            ("QUERY", true, true),
            ("PUT", false, true),
            ("DELETE", false, true),
            ("POST", false, false),
            ("PATCH", false, false),
            ("CONNECT", false, false),
            ("PROPFIND", false, false),
        ];
        for (method, safe, idempotent) in rows {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(by_method(&method, &none, false), safe, "{method}");
            assert_eq!(by_method(&method, &none, true), idempotent, "{method}, by opt-in");
        }
    }

    #[test]
    fn upgrade_is_not_begun_twice() {
        let upgrade = HeaderMap::from_iter([(
            http::header::UPGRADE,
            http::HeaderValue::from_static("websocket"),
        )]);
        assert!(!by_method(&Method::GET, &upgrade, true));
    }

    #[test]
    fn key_alone_is_not_hedgeable() {
        let keyed = HeaderMap::from_iter([(
            reattempt_http::IDEMPOTENCY_KEY,
            http::HeaderValue::from_static("\"one\""),
        )]);
        assert!(!by_method(&Method::POST, &keyed, true));
    }
}
