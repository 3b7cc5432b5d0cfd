//! Parsers for the numbers in header values.

use std::time::Duration;

/// The units of a delay, in milliseconds, by each of their names in lower case.
const UNITS: [(&[&str], u64); 5] = [
    (&["ms", "msec", "millis", "milliseconds"], 1),
    (&["s", "sec", "secs", "second", "seconds"], 1000),
    (&["m", "min", "mins", "minute", "minutes"], 60_000),
    (&["h", "hour", "hours"], 3_600_000),
    (&["d", "day", "days"], 86_400_000),
];

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

/// Parses digits with an optional fraction. Returns the whole number, and `true` if a fraction above zero follows.
fn decimal(value: &[u8]) -> Option<(u64, bool)> {
    let mut parts = value.splitn(2, |byte| *byte == b'.');
    let whole = digits(parts.next()?)?;
    let more = match parts.next() {
        Some(fraction) => digits(fraction)? > 0,
        None => false,
    };
    Some((whole, more))
}

/// Parses a number. A fraction is rounded down.
pub(super) fn rounded_down(value: &[u8]) -> Option<u64> {
    decimal(value).map(|(whole, _)| whole)
}

/// Parses a number. A fraction is rounded up, so that no delay becomes shorter.
pub(super) fn rounded_up(value: &[u8]) -> Option<u64> {
    decimal(value).map(|(whole, more)| whole.saturating_add(u64::from(more)))
}

/// Parses a delay in whole seconds.
pub(super) fn delta_seconds(value: &[u8]) -> Option<Duration> {
    digits(value).map(Duration::from_secs)
}

/// Parses a delay in milliseconds. A fraction is allowed because the vendors' own clients parse a float.
pub(super) fn milliseconds(value: &[u8]) -> Option<Duration> {
    rounded_up(value).map(Duration::from_millis)
}

/// Parses numbers with units, from days to milliseconds, such as `60s`, `6m0s` or `1.5 hours`. The sum is rounded up to
/// milliseconds.
pub(super) fn with_units(value: &[u8]) -> Option<Duration> {
    let (mut rest, mut sum) = (value, 0_u64);
    let mut unit_before = u64::MAX;
    while !rest.is_empty() {
        let (number, after) = split(rest, |byte| byte.is_ascii_digit() || byte == b'.');
        let (name, after) = split(after.trim_ascii_start(), |byte| byte.is_ascii_alphabetic());
        let unit = unit(name).filter(|unit| *unit < unit_before)?;
        sum = sum.saturating_add(scaled(number, unit)?);
        (rest, unit_before) = (after.trim_ascii_start(), unit);
    }
    (unit_before < u64::MAX).then(|| Duration::from_millis(sum))
}

/// Returns the product of a decimal number and a factor, rounded up. Digits past the ninth of a fraction only round it.
fn scaled(number: &[u8], factor: u64) -> Option<u64> {
    const BILLION: u128 = 1_000_000_000;
    let (whole, _) = decimal(number)?;
    let fraction = number.iter().skip_while(|byte| **byte != b'.').skip(1);
    let mut scale = BILLION;
    let (mut billionths, mut rest) = (0, false);
    for digit in fraction.map(|byte| u128::from(byte - b'0')) {
        scale /= 10;
        billionths += digit * scale;
        rest |= scale == 0 && digit > 0;
    }
    let part = ((billionths + u128::from(rest)) * u128::from(factor)).div_ceil(BILLION);
    Some(whole.saturating_mul(factor).saturating_add(u64::try_from(part).unwrap_or(u64::MAX)))
}

fn unit(name: &[u8]) -> Option<u64> {
    let known = UNITS.iter().find(|(names, _)| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes())));
    known.map(|(_, milliseconds)| *milliseconds)
}

/// Splits the text at the first byte that does not belong to its beginning.
fn split(text: &[u8], belongs: impl Fn(u8) -> bool) -> (&[u8], &[u8]) {
    text.split_at(text.iter().position(|byte| !belongs(*byte)).unwrap_or(text.len()))
}
