//! Idempotency keys, which make any request repeatable.

use http::{HeaderName, HeaderValue};

/// The header `Idempotency-Key`. A server that supports it processes requests with the same key only once
/// ([draft-ietf-httpapi-idempotency-key-header](https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/)).
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Creates a key for one call. Send it unchanged with every attempt of that call.
///
/// The value is a random UUID (version 4) in double quotes, such as `"8e03978e-40d5-43e8-bc93-6894a57f9324"`. The IETF
/// draft (§2.1) defines the value as a structured-field string, which includes the quotes. Servers that do not parse
/// the value, such as Stripe's, treat the quotes as part of the key. If a server requires a bare value, set the header
/// yourself.
///
/// The random bits come from the operating system, never from the generator used for jitter. Otherwise two processes
/// with the same seed could share a key, and one would get the other's response.
///
/// # Panics
///
/// Panics if the operating system fails to provide random bytes.
#[must_use]
pub fn new_idempotency_key() -> HeaderValue {
    let mut random = [0; 16];
    #[allow(clippy::expect_used, reason = "documented: a key that is not random must not be sent")]
    getrandom::fill(&mut random).expect("the operating system provides random bytes");
    let mut digits = random.into_iter().flat_map(|byte| [byte >> 4, byte & 0xf]);
    let mut digit = || digits.next().unwrap_or_default();
    // RFC 9562 §5.4: 4 is the version, and the two upper bits of `y` are the variant.
    let mut quoted = *b"\"xxxxxxxx-xxxx-4xxx-yxxx-xxxxxxxxxxxx\"";
    for place in &mut quoted {
        match place {
            b'x' => *place = hexadecimal(digit()),
            b'y' => *place = hexadecimal(0x8 | (digit() & 0x3)),
            _ => {}
        }
    }
    #[allow(clippy::expect_used, reason = "hexadecimal digits, hyphens and quotes are visible ASCII")]
    HeaderValue::from_bytes(&quoted).expect("visible ASCII is a legal header value")
}

/// Returns the lower-case hexadecimal digit for a number below 16.
fn hexadecimal(number: u8) -> u8 {
    if number < 10 { b'0' + number } else { b'a' + number - 10 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_key_is_uuid_in_quotes_and_never_same() {
        let mut variants = [0; 16];
        let mut seen = [0_u32; 16];
        for _ in 0..200 {
            let key = new_idempotency_key();
            let text = key.to_str().unwrap();
            let bare = text.strip_prefix('"').unwrap().strip_suffix('"').unwrap();
            let parts: Vec<&str> = bare.split('-').collect();
            assert_eq!(parts.iter().map(|part| part.len()).collect::<Vec<_>>(), [8, 4, 4, 4, 12], "{bare}");
            assert!(parts.concat().bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')), "{bare}");
            assert!(parts[2].starts_with('4'), "{bare}");
            let variant = parts[3].chars().next().and_then(|digit| digit.to_digit(16)).unwrap();
            variants[variant as usize] += 1;
            for digit in parts[4].chars() {
                seen[digit.to_digit(16).unwrap() as usize] += 1;
            }
            assert_ne!(key, new_idempotency_key());
        }
        assert!(variants[8..12].iter().all(|&count| count > 10), "{variants:?}");
        assert_eq!(variants.iter().sum::<i32>(), variants[8..12].iter().sum::<i32>());
        assert!(seen.iter().all(|&count| (80..220).contains(&count)), "150 of each digit: {seen:?}");
    }
}
