//! The reset of an exhausted rate limit: headers flow in, the wait until there is quota again
//! flows out.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;

use super::longest;
use super::number::{delta_seconds, digits};

/// From here on an `X-RateLimit-Reset` is a time of day, not a wait: 2001-09-09, or 31 years.
const EPOCH_FROM: Duration = Duration::from_secs(1_000_000_000);

const RATE_LIMIT: &str = "ratelimit";
const REMAINING: &str = "ratelimit-remaining";
const RESET: &str = "ratelimit-reset";
const X_REMAINING: &str = "x-ratelimit-remaining";
const X_RESET: &str = "x-ratelimit-reset";

/// The wait until there is quota again, if these headers say that there is none left.
/// `until` measures how far off a date is.
pub(super) fn wait(
    headers: &HeaderMap,
    until: impl Fn(SystemTime) -> Duration,
) -> Option<Duration> {
    longest(headers, RATE_LIMIT, |value| {
        split_outside_quotes(value, b',').filter_map(exhausted_for).max()
    })
    .or_else(|| {
        let reset = longest(headers, RESET, delta_seconds);
        reset.filter(|_| is_exhausted(headers, REMAINING))
    })
    .or_else(|| {
        let reset = longest(headers, X_RESET, delta_seconds);
        reset.filter(|_| is_exhausted(headers, X_REMAINING)).map(|reset| {
            match UNIX_EPOCH.checked_add(reset) {
                Some(date) if reset >= EPOCH_FROM => until(date),
                _ => reset,
            }
        })
    })
}

/// Whether any value of this header is a zero.
fn is_exhausted(headers: &HeaderMap, remaining: &str) -> bool {
    headers.get_all(remaining).iter().any(|value| digits(value.as_bytes().trim_ascii()) == Some(0))
}

/// `t` of one member of a `RateLimit` list such as `"default";r=0;t=30`, when its `r` is 0.
///
/// Structured fields (RFC 9651 §4.2.3.2): parameters stand after the item, each behind a
/// semicolon, and the last of one name counts.
fn exhausted_for(member: &[u8]) -> Option<Duration> {
    let mut remaining = None;
    let mut reset = None;
    for parameter in split_outside_quotes(member, b';').skip(1) {
        match parameter.trim_ascii() {
            [b'r', b'=', number @ ..] => remaining = digits(number),
            [b't', b'=', number @ ..] => reset = delta_seconds(number),
            _ => {}
        }
    }
    reset.filter(|_| remaining == Some(0))
}

/// Splits at each `separator` that is not inside a quoted string, where `\` escapes one byte.
fn split_outside_quotes(text: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |&byte| {
        let escapes = quoted && !escaped && byte == b'\\';
        if byte == b'"' && !escaped {
            quoted = !quoted;
        }
        escaped = escapes;
        byte == separator && !quoted
    })
}
