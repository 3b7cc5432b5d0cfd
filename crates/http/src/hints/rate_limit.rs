//! The rate-limit headers, which contain the remaining quota and the delay until its reset.

use std::cmp::Ordering;
use std::time::{Duration, UNIX_EPOCH};

use http::header::AGE;
use http::{HeaderMap, HeaderName};
use reattempt_core::guard::Quota;

use super::list::items;
use super::number::{delta_seconds, digits};
use super::{Until, longest};

/// The smallest `X-RateLimit-Reset` that is read as Unix time (2001-09-09). Smaller values are delays (up to 31 years).
const EPOCH_FROM: Duration = Duration::from_secs(1_000_000_000);

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
static RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
static X_REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
static X_RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// A quota: the remaining calls, and the time until its reset.
type Left = (u64, Duration);

/// Returns the delay until the reset, if these headers show that no quota is left. `until` measures the time until a
/// date.
pub(super) fn wait(headers: &HeaderMap, until: Until<'_>) -> Option<Duration> {
    if is_cached(headers) {
        return None;
    }
    let reset = |left: Left| (left.0 == 0).then_some(left.1);
    list(headers)
        .into_iter()
        .filter_map(reset)
        .max()
        .or_else(|| pair(headers, &REMAINING, &RESET).and_then(reset))
        .or_else(|| of_vendor(headers, until).and_then(reset))
}

/// Returns the most restrictive quota.
#[cold]
pub(super) fn quota(headers: &HeaderMap, until: Until<'_>) -> Option<Quota> {
    if is_cached(headers) {
        return None;
    }
    let (remaining, reset) = list(headers)
        .into_iter()
        .min_by(by_rate)
        .or_else(|| pair(headers, &REMAINING, &RESET))
        .or_else(|| of_vendor(headers, until))?;
    Some(Quota::new(u32::try_from(remaining).unwrap_or(u32::MAX), reset))
}

/// Compares quotas by rate. If the rates are equal, the one with the longer time comes first.
fn by_rate(one: &Left, other: &Left) -> Ordering {
    let crossed = |(calls, _): &Left, (_, time): &Left| u128::from(*calls).saturating_mul(time.as_nanos());
    crossed(one, other).cmp(&crossed(other, one)).then(other.1.cmp(&one.1))
}

/// Returns `true` if the response comes from a cache, so its quota may be outdated.
fn is_cached(headers: &HeaderMap) -> bool {
    longest(headers.get_all(AGE), &delta_seconds).is_some_and(|age| !age.is_zero())
}

/// Returns the quota from two headers. If there are several values, the lowest remaining count and the longest time are
/// used.
fn pair(headers: &HeaderMap, remaining: &HeaderName, reset: &HeaderName) -> Option<Left> {
    let values = headers.get_all(remaining).iter();
    let remaining = values.filter_map(|value| digits(value.as_bytes().trim_ascii())).min()?;
    Some((remaining, longest(headers.get_all(reset), &delta_seconds)?))
}

fn of_vendor(headers: &HeaderMap, until: Until<'_>) -> Option<Left> {
    let (remaining, reset) = pair(headers, &X_REMAINING, &X_RESET)?;
    let reset = match UNIX_EPOCH.checked_add(reset) {
        Some(date) if reset >= EPOCH_FROM => until(date),
        _ => reset,
    };
    Some((remaining, reset))
}

/// Returns the members with `r` and `t`. All field lines form a single list, which is ignored as a whole if it is
/// malformed (RFC 9651 §4.2). If a parameter is repeated, the last value is used.
fn list(headers: &HeaderMap) -> Vec<Left> {
    let mut quotas = Vec::new();
    for line in headers.get_all(&RATE_LIMIT) {
        let Some(members) = items(line.as_bytes()) else { return Vec::new() };
        for parameters in members {
            let (mut remaining, mut reset) = (None, None);
            for (name, value) in parameters {
                match name {
                    b"r" => remaining = Some(value),
                    b"t" => reset = Some(value),
                    _ => {}
                }
            }
            match (remaining, reset) {
                // Each must be a non-negative integer if it is present.
                (Some(None), _) | (_, Some(None)) => return Vec::new(),
                (Some(Some(remaining)), Some(Some(reset))) => quotas.push((remaining, Duration::from_secs(reset))),
                _ => {}
            }
        }
    }
    quotas
}
