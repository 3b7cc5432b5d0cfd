//! The `Content-Range` of a partial response (RFC 9110 §14.4).

use http::HeaderValue;

use super::digits;

/// A satisfied byte range: the positions of its first and last byte, and the length of the whole content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContentRange {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) total: u64,
}

impl ContentRange {
    /// Parses `bytes FIRST-LAST/TOTAL`. Returns `None` for any other form: another unit, an unknown total (`*`), an
    /// unsatisfied or invalid range, a number of 2⁶⁴ or more.
    pub(super) fn parse(value: &HeaderValue) -> Option<Self> {
        let (unit, range) = value.to_str().ok()?.split_once(' ')?;
        let (range, total) = range.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last, total) = (digits(first)?, digits(last)?, digits(total)?);
        let is_valid = unit.eq_ignore_ascii_case("bytes") && first <= last && last < total;
        is_valid.then_some(Self { first, last, total })
    }
}
