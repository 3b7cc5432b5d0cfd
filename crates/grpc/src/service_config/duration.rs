//! A parser for protobuf durations in JSON, such as `"1.5s"`.

// SC-24

use std::time::Duration;

/// The longest protobuf duration, about ten thousand years.
const MOST_SECONDS: u64 = 315_576_000_000;

/// Parses `digits[.digits]s` with at most nine decimals. Returns `None` for anything else and for negative durations.
///
/// The number must be valid JSON. If `lenient`, digits may be missing before or after the point, and leading zeros are
/// allowed.
pub(super) fn parse(text: &str, lenient: bool) -> Option<Duration> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let number = text.strip_suffix('s')?;
    let (whole, fraction) = match number.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (number, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let decimals = fraction.unwrap_or("");
    if !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let bare = whole.is_empty() || fraction == Some("");
    let padded = whole.len() > 1 && whole.starts_with('0');
    let nothing = whole.is_empty() && decimals.is_empty();
    if nothing || (!lenient && (bare || padded)) {
        return None;
    }
    let seconds = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanoseconds = format!("{decimals:0<9}").parse().ok()?;
    let duration = Duration::new(seconds, nanoseconds);
    (seconds <= MOST_SECONDS && (duration.is_zero() || !negative)).then_some(duration)
}

#[cfg(test)]
mod tests {
    use super::*;

    // SC-24
    #[test]
    fn table_of_durations() {
        let most = Duration::new(MOST_SECONDS, 999_999_999);
        // (text, strict, lenient)
        let rows = [
            ("1s", Some(Duration::from_secs(1)), true),
            ("0s", Some(Duration::ZERO), true),
            ("-0s", Some(Duration::ZERO), true),
            ("0.5s", Some(Duration::from_millis(500)), true),
            ("1.000340012s", Some(Duration::new(1, 340_012)), true),
            ("0.000000001s", Some(Duration::from_nanos(1)), true),
            ("315576000000.999999999s", Some(most), true),
            ("10.50s", Some(Duration::from_millis(10_500)), true),
            (".5s", None, true),
            ("1.s", None, true),
            ("01s", None, true),
            ("00.5s", None, true),
            (".s", None, false),
            ("s", None, false),
            ("-s", None, false),
            ("", None, false),
            ("1.0000000001s", None, false),
            ("1.0000000000s", None, false),
            ("-1s", None, false),
            ("-0.000000001s", None, false),
            ("--1s", None, false),
            ("+1s", None, false),
            ("1", None, false),
            ("1ms", None, false),
            ("1m", None, false),
            ("1S", None, false),
            ("1e3s", None, false),
            ("1.5.5s", None, false),
            ("1.-5s", None, false),
            ("1_0s", None, false),
            ("315576000001s", None, false),
            ("99999999999999999999999s", None, false),
            (" 1s", None, false),
            ("1s ", None, false),
            ("1 s", None, false),
            ("١s", None, false),
            ("infs", None, false),
        ];
        for (text, strict, lenient) in rows {
            assert_eq!(parse(text, false), strict, "{text:?}");
            assert_eq!(parse(text, true).is_some(), lenient, "{text:?}, leniently");
        }
        assert_eq!(parse(".5s", true), Some(Duration::from_millis(500)));
        assert_eq!(parse("01.s", true), Some(Duration::from_secs(1)));
    }
}
