//! The idempotency key: the header that makes any request repeatable, and new values for it.

use http::{HeaderName, HeaderValue};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The header `Idempotency-Key`: a server that knows it carries out requests of one key once.
///
/// [draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A new key for one logical call: to be sent, unchanged, with every attempt of that call.
///
/// The value is a random UUID (version 4) in double quotes, as in
/// `"8e03978e-40d5-43e8-bc93-6894a57f9324"`: the IETF draft makes the header a structured-field
/// string (§2.1), which is written in quotes. Servers that take the value as it stands, as Stripe
/// does, take the quotes for two more characters of it. For a server that insists on a bare
/// value, set the header yourself.
///
/// The bits come from the operating system's random source (or, where the application turned on
/// uuid's `fast-rng`, from a generator seeded by it), never from the generator behind the jitter:
/// two processes with the same seed must not share a key, or one gets the other's answer.
///
/// # Panics
///
/// When the operating system has no random bytes to give.
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
