//! The `Content-Range` of a response (RFC 9110 §14.4), and the `Range` of a request (RFC 9110 §14.2).

use http::HeaderValue;

use super::digits;

/// A satisfied byte range: the position of its first byte, the position after its last byte, and the length of the
/// whole content if the server knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) first: u64,
    pub(super) end: u64,
    pub(super) total: Option<u64>,
}

impl ContentRange {
    /// Parses `bytes FIRST-LAST/TOTAL` and `bytes FIRST-LAST/*`. Returns `None` for any other form: another unit, an
    /// unsatisfied or invalid range, a number of 2⁶⁴ or more.
    pub(super) fn parse(value: &HeaderValue) -> Option<Self> {
        let (range, total) = bytes(value)?;
        let (first, last) = range.split_once('-')?;
        let (first, end) = (digits(first)?, digits(last)?.checked_add(1)?);
        let total = if total == "*" { None } else { Some(digits(total)?) };
        let is_valid = first < end && total.is_none_or(|total| end <= total);
        is_valid.then_some(Self { first, end, total })
    }

    pub(super) const fn length(&self) -> u64 {
        self.end - self.first
    }
}

/// Returns the length of the content in an unsatisfied range, `bytes */TOTAL`.
pub(super) fn unsatisfied(value: &HeaderValue) -> Option<u64> {
    let (range, total) = bytes(value)?;
    if range == "*" { digits(total) } else { None }
}

/// Splits a value in bytes into its range and its total.
fn bytes(value: &HeaderValue) -> Option<(&str, &str)> {
    let (unit, range) = value.to_str().ok()?.split_once(' ')?;
    if unit.eq_ignore_ascii_case("bytes") { range.split_once('/') } else { None }
}

/// Returns `true` for the `Range` of one part: `bytes=FIRST-LAST`, `bytes=FIRST-` or `bytes=-LENGTH`.
pub(super) fn is_one_range(value: &HeaderValue) -> bool {
    let parts = || {
        let (unit, range) = value.to_str().ok()?.split_once('=')?;
        let (first, last) = range.split_once('-')?;
        let bound = |text: &str| if text.is_empty() { Some(None) } else { digits(text).map(Some) };
        unit.eq_ignore_ascii_case("bytes").then_some((bound(first)?, bound(last)?))
    };
    match parts() {
        Some((Some(first), Some(last))) => first <= last,
        Some((first, last)) => first.is_some() || last.is_some(),
        None => false,
    }
}
