//! Parsers for the dates in header values.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::number::{digits, rounded_up};

/// The smallest number that is read as Unix time (2001-09-09). Smaller values are delays, of up to 31 years.
const SECONDS_FROM: u64 = 1_000_000_000;
/// The smallest number that is read as milliseconds since 1970 (2001-09-09).
const MILLISECONDS_FROM: u64 = SECONDS_FROM * 1000;
/// The first number that is neither (the year 5138).
const SECONDS_UNTIL: u64 = 100_000_000_000;
const MILLISECONDS_UNTIL: u64 = SECONDS_UNTIL * 1000;

/// Parses a number that is too large for a delay: the time since 1970 in seconds or milliseconds. A fraction is rounded
/// up.
pub(super) fn epoch(value: &[u8]) -> Option<SystemTime> {
    let since = match rounded_up(value)? {
        seconds @ SECONDS_FROM..SECONDS_UNTIL => Duration::from_secs(seconds),
        milliseconds @ MILLISECONDS_FROM..MILLISECONDS_UNTIL => Duration::from_millis(milliseconds),
        _ => return None,
    };
    UNIX_EPOCH.checked_add(since)
}

/// Parses an HTTP date, also with `UTC` or `+0000` for `GMT`, or an ISO 8601 date and time with a zone.
pub(super) fn date(value: &[u8]) -> Option<SystemTime> {
    let text = std::str::from_utf8(value).ok()?;
    http_date(text).or_else(|| {
        let before = [" UTC", " +0000", " -0000"].iter().find_map(|zone| text.strip_suffix(zone));
        before.and_then(|before| http_date(&format!("{before} GMT"))).or_else(|| iso_date(text))
    })
}

/// RFC 9110 §5.6.7: "A recipient that parses a timestamp value in an HTTP field MUST accept all
/// three HTTP-date formats."
fn http_date(text: &str) -> Option<SystemTime> {
    if let Ok(date) = httpdate::parse_http_date(text) {
        return Some(date);
    }
    // A leap second is allowed by RFC 5322 and therefore by RFC 9110.
    let (before, after) = text.rsplit_once(":60").filter(|(_, after)| !after.starts_with(':'))?;
    let before = httpdate::parse_http_date(&format!("{before}:59{after}")).ok()?;
    before.checked_add(Duration::from_secs(1))
}

/// Parses a date and time such as `2026-11-28T20:41:55.5+01:00`. The seconds may be missing, the zone may not.
fn iso_date(text: &str) -> Option<SystemTime> {
    let (day, time) = text.split_once(['T', 't', ' '])?;
    let zone = time.find(|character: char| !character.is_ascii_digit() && character != ':' && character != '.')?;
    let (time, zone) = time.split_at(zone);
    let [year, month, day] = fields(day, '-', [4, 2, 2])?;
    let (clock, fraction) = time.split_once('.').map_or((time, None), |(clock, fraction)| (clock, Some(fraction)));
    let [hour, minute, second] = fields(clock, ':', [2, 2, 2]).or_else(|| {
        fields(clock, ':', [2, 2]).filter(|_| fraction.is_none()).map(|[hour, minute]| [hour, minute, 0])
    })?;
    let more = match fraction {
        Some(fraction) => digits(fraction.as_bytes())? > 0,
        None => false,
    };
    let offset = offset(zone.trim_start())?;
    let valid = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if !valid || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = ((days_before(year, month) + day - 1) * 24 + hour) * 3600 + minute * 60 + second + i64::from(more);
    let since = u64::try_from(seconds - offset).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(since))
}

/// Splits the text into this many numbers of these lengths.
fn fields<const N: usize>(text: &str, separator: char, lengths: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; N];
    for (number, length) in numbers.iter_mut().zip(lengths) {
        let part = parts.next().filter(|part| part.len() == length)?;
        *number = i64::try_from(digits(part.as_bytes())?).ok()?;
    }
    parts.next().is_none().then_some(numbers)
}

/// Returns a zone's offset from UTC in seconds.
fn offset(zone: &str) -> Option<i64> {
    if ["Z", "z", "UTC", "GMT"].contains(&zone) {
        return Some(0);
    }
    let (sign, rest) = match zone.strip_prefix('+') {
        Some(rest) => (1, rest),
        None => (-1, zone.strip_prefix('-')?),
    };
    let (hours, minutes) = match (fields(rest, ':', [2, 2]), fields(rest, ':', [4])) {
        (Some([hours, minutes]), _) => (hours, minutes),
        (None, Some([both])) => (both / 100, both % 100),
        (None, None) => (fields(rest, ':', [2])?[0], 0),
    };
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60)
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days from 1970 to the first day of a month.
fn days_before(year: i64, month: i64) -> i64 {
    let last = year - 1;
    let leap_days = last / 4 - last / 100 + last / 400;
    const LEAP_DAYS_BEFORE_1970: i64 = 1969 / 4 - 1969 / 100 + 1969 / 400;
    let years = (year - 1970) * 365 + leap_days - LEAP_DAYS_BEFORE_1970;
    years + (1..month).map(|month| days_in(year, month)).sum::<i64>()
}
