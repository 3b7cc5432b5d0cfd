//! Parsers for the numbers in header values.

use std::time::Duration;

/// RFC 9110 §10.2.3: "delay-seconds = 1*DIGIT". No sign, no fraction, no other script's digits;
/// any number of them, saturating.
pub(super) fn digits(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let number = value.iter().fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    Some(number)
}

/// A wait in whole seconds.
pub(super) fn delta_seconds(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_secs)
}

/// A wait in milliseconds. The vendors' own clients read the number as a float, so a fraction is
/// legal; it counts as one more millisecond, never as none.
pub(super) fn milliseconds(value: &[u8]) -> Option<Duration> {
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let whole = digits(parts.next()?)?;
    let more = match parts.next() {
        Some(fraction) => u64::from(digits(fraction)? > 0),
        None => 0,
    };
    Some(Duration::from_millis(whole.saturating_add(more)))
}
