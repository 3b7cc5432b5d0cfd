//! The rate-limit headers, which contain the remaining quota and the delay until its reset.

use std::cmp::Ordering;
use std::time::Duration;

use http::header::AGE;
use http::{HeaderMap, HeaderName, HeaderValue};
use reattempt_core::guard::Quota;

use super::date::{date, epoch};
use super::list::items;
use super::number::{delta_seconds, rounded_down, rounded_up, with_units};
use super::{Hints, Until, each, longest};

/// A longer delay until a reset is absurd, so that the header is ignored.
const MOST: Duration = Duration::from_secs(86_400);

static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The names of the remaining quota and of the time of its reset.
static PAIRS: [[HeaderName; 2]; 13] = [
    pair_of("ratelimit-remaining", "ratelimit-reset"),
    pair_of("x-ratelimit-remaining", "x-ratelimit-reset"),
    pair_of("x-ratelimit-remaining", "x-ratelimit-reset-after"),
    pair_of("x-rate-limit-remaining", "x-rate-limit-reset"),
    pair_of("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    pair_of("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    pair_of("x-ratelimit-requests-remaining", "x-ratelimit-requests-reset"),
    pair_of("x-ratelimit-complexity-remaining", "x-ratelimit-complexity-reset"),
    pair_of("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    pair_of("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    pair_of("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    pair_of("x-sentry-rate-limit-remaining", "x-sentry-rate-limit-reset"),
    pair_of("x-sib-ratelimit-remaining", "x-sib-ratelimit-reset"),
];

const fn pair_of(remaining: &'static str, reset: &'static str) -> [HeaderName; 2] {
    [HeaderName::from_static(remaining), HeaderName::from_static(reset)]
}

/// A quota: the remaining calls, and the time until its reset.
type Left = (u64, Duration);

/// Returns the delay until the reset, if these headers show that no quota is left. `until` measures the time until a
/// date.
pub(super) fn wait(hints: &Hints, headers: &HeaderMap, until: Until<'_>) -> Option<Duration> {
    quotas(hints, headers, until).filter(|left| left.0 == 0).map(|left| left.1).max()
}

/// Returns the most restrictive quota.
#[cold]
pub(super) fn quota(hints: &Hints, headers: &HeaderMap, until: Until<'_>) -> Option<Quota> {
    let (remaining, reset) = quotas(hints, headers, until).min_by(by_rate)?;
    Some(Quota::new(u32::try_from(remaining).unwrap_or(u32::MAX), reset))
}

/// Compares quotas by rate. If the rates are equal, the one with the longer time comes first.
fn by_rate(one: &Left, other: &Left) -> Ordering {
    let crossed = |(calls, _): &Left, (_, time): &Left| u128::from(*calls).saturating_mul(time.as_nanos());
    crossed(one, other).cmp(&crossed(other, one)).then(other.1.cmp(&one.1))
}

/// Returns every quota in the headers that the hints select, unless the response comes from a cache, so that they may
/// be outdated.
fn quotas<'a>(hints: &'a Hints, headers: &'a HeaderMap, until: Until<'a>) -> impl Iterator<Item = Left> + 'a {
    let is_cached = longest(headers.get_all(AGE), &delta_seconds).is_some_and(|age| !age.is_zero());
    let known = hints.rate_limit && !is_cached;
    let list = if known { list(headers) } else { Vec::new() };
    let known = if known { &PAIRS[..] } else { &[] };
    let added = hints.added.as_deref().filter(|_| !is_cached).map(|added| &*added.quotas).unwrap_or_default();
    list.into_iter().chain(known.iter().chain(added).filter_map(move |names| pair(headers, names, until)))
}

/// Returns the quota from two headers. If there are several values, the lowest remaining count and the longest time are
/// used. A fraction of a call is none.
fn pair(headers: &HeaderMap, [remaining, time]: &[HeaderName; 2], until: Until<'_>) -> Option<Left> {
    let remaining = each(headers.get_all(remaining)).filter_map(rounded_down).min()?;
    Some((remaining, longest(headers.get_all(time), &|value| reset(value, until))?))
}

/// Returns the time until a reset: a delay, or a date in any form.
fn reset(value: &[u8], until: Until<'_>) -> Option<Duration> {
    if let Some(date) = epoch(value).or_else(|| date(value)) {
        return Some(until(date));
    }
    let delay = rounded_up(value).map(Duration::from_secs).or_else(|| with_units(value));
    delay.filter(|delay| *delay <= MOST)
}

/// Returns the members with `r` and `t`. All field lines form a single list, which is ignored as a whole if it is
/// malformed (RFC 9651 §4.2). If a parameter is repeated, the last value is used.
fn list(headers: &HeaderMap) -> Vec<Left> {
    let lines: Vec<_> = headers.get_all(&RATE_LIMIT).iter().map(HeaderValue::as_bytes).collect();
    let joined = lines.join(&b", "[..]);
    let mut quotas = Vec::new();
    for parameters in items(&joined).unwrap_or_default() {
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
    quotas
}
