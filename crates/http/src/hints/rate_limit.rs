//! The headers of an exhausted rate limit, and the delay until there is quota again.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::header::AGE;

use super::list::items;
use super::longest;
use super::number::{delta_seconds, digits};

/// From here on an `X-RateLimit-Reset` is a time of day, not a wait: 2001-09-09, or 31 years.
const EPOCH_FROM: Duration = Duration::from_secs(1_000_000_000);

const RATE_LIMIT: &str = "ratelimit";
const REMAINING: &str = "ratelimit-remaining";
const RESET: &str = "ratelimit-reset";
const X_REMAINING: &str = "x-ratelimit-remaining";
const X_RESET: &str = "x-ratelimit-reset";

/// Returns the delay until there is quota again, if these headers show that none is left.
/// `until` measures how far off a date is.
pub(super) fn wait(
    headers: &HeaderMap,
    until: impl Fn(SystemTime) -> Duration,
) -> Option<Duration> {
    // A cached response does not show the current quota.
    if longest(headers, AGE, delta_seconds).is_some_and(|age| !age.is_zero()) {
        return None;
    }
    exhausted_for(headers)
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

/// Returns `true` if any value of this header is zero.
fn is_exhausted(headers: &HeaderMap, remaining: &str) -> bool {
    headers.get_all(remaining).iter().any(|value| digits(value.as_bytes().trim_ascii()) == Some(0))
}

/// The longest `t` of those members whose `r` is 0. All lines of the field are one list, and a list that is
/// malformed is ignored as a whole (RFC 9651 §4.2). Of several parameters of one name the last counts.
fn exhausted_for(headers: &HeaderMap) -> Option<Duration> {
    let mut longest = None;
    for line in headers.get_all(RATE_LIMIT) {
        for parameters in items(line.as_bytes())? {
            let mut of_name = parameters.iter().rev();
            let remaining = of_name.clone().find(|(name, _)| *name == b"r");
            let reset = of_name.find(|(name, _)| *name == b"t");
            // Each is an integer that is not negative, if it is there.
            let remaining = remaining.map(|(_, value)| *value);
            let reset = reset.map(|(_, value)| *value);
            if remaining == Some(None) || reset == Some(None) {
                return None;
            }
            if remaining.flatten() == Some(0) {
                longest = longest.max(reset.flatten().map(Duration::from_secs));
            }
        }
    }
    longest
}
