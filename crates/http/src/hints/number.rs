//! Parsers for the numbers in header values.

use std::time::Duration;

/// Parses ASCII digits, without a sign or a fraction. The number saturates (RFC 9110 §10.2.3: "delay-seconds =
/// 1*DIGIT").
pub(super) fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number =
        value.iter().fold(0_u64, |number, digit| number.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(number)
}

/// Parses a delay in whole seconds.
pub(super) fn delta_seconds(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_secs)
}

/// Parses a delay in milliseconds. A fraction is rounded up; it is allowed because the vendors' own clients parse a
/// float.
pub(super) fn milliseconds(value: &[u8]) -> Option<Duration> {
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let whole = digits(parts.next()?)?;
    let more = match parts.next() {
        Some(fraction) => u64::from(digits(fraction)? > 0),
        None => 0,
    };
    Some(Duration::from_millis(whole.saturating_add(more)))
}
