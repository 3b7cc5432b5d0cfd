//! The idempotency key: the header that makes any request repeatable, and new values for it.

use http::{HeaderName, HeaderValue};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The header `Idempotency-Key`. A server that supports it processes all requests with one key once
/// ([draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Creates a key for one call. Send it unchanged with every attempt of that call.
///
/// The value is a random UUID (version 4) in double quotes, such as
/// `"8e03978e-40d5-43e8-bc93-6894a57f9324"`. The IETF draft (§2.1) defines the value as a structured-field
/// string, which has quotes. Servers that do not parse the value, such as Stripe's, treat the quotes as part of
/// the key. If a server requires a bare value, set the header yourself.
///
/// The random bits come from the operating system, or from uuid's `fast-rng` if the application enables it. They
/// never come from the generator of the jitter. Two processes with one seed would otherwise share a key, and one
/// would get the other's response.
///
/// # Panics
///
/// Panics if the operating system fails to provide random bytes.
#[must_use]
pub fn new_idempotency_key() -> HeaderValue {
    let mut quoted = [b'"'; Hyphenated::LENGTH + 2];
    Uuid::new_v4().as_hyphenated().encode_lower(&mut quoted[1..=Hyphenated::LENGTH]);
    #[allow(
        clippy::expect_used,
        reason = "hexadecimal digits, hyphens and quotes are visible ASCII"
    )]
    HeaderValue::from_bytes(&quoted).expect("visible ASCII is a legal header value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_key_is_uuid_in_quotes_and_never_same() {
        let key = new_idempotency_key();
        let text = key.to_str().unwrap();
        let bare = text.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
        let uuid = Uuid::parse_str(bare).unwrap();
        assert_eq!(uuid.get_version_num(), 4);
        assert_eq!(uuid.as_hyphenated().to_string(), bare, "lower case, with hyphens");
        assert_ne!(key, new_idempotency_key());
    }
}
