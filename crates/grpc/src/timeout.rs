//! The `grpc-timeout` header: the caller's time limit for a call.

use std::time::Duration;

/// Parses a `grpc-timeout` value: 1 to 8 digits and a unit.
///
/// The units are `H` (hours), `M` (minutes), `S` (seconds), `m` (milliseconds), `u` (microseconds) and
/// `n` (nanoseconds). Returns `None` for anything else.
///
/// ```
/// use std::time::Duration;
/// use reattempt_grpc::parse_grpc_timeout;
/// assert_eq!(parse_grpc_timeout(b"1500m"), Some(Duration::from_millis(1500)));
/// assert_eq!(parse_grpc_timeout(b"1.5S"), None);
/// ```
// DL-9
pub fn parse_grpc_timeout(value: &[u8]) -> Option<Duration> {
    let (unit, digits) = value.split_last()?;
    if !(1..=8).contains(&digits.len()) || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let amount = digits.iter().fold(0, |amount, digit| amount * 10 + u64::from(digit - b'0'));
    match unit {
        b'H' => Some(Duration::from_secs(amount * 3600)),
        b'M' => Some(Duration::from_secs(amount * 60)),
        b'S' => Some(Duration::from_secs(amount)),
        b'm' => Some(Duration::from_millis(amount)),
        b'u' => Some(Duration::from_micros(amount)),
        b'n' => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // DL-9
    #[test]
    fn six_units_are_read_and_nothing_else() {
        let rows: [(&[u8], Option<Duration>); 13] = [
            (b"2H", Some(Duration::from_secs(7200))),
            (b"3M", Some(Duration::from_secs(180))),
            (b"4S", Some(Duration::from_secs(4))),
            (b"5m", Some(Duration::from_millis(5))),
            (b"6u", Some(Duration::from_micros(6))),
            (b"99999999n", Some(Duration::from_nanos(99_999_999))),
            (b"100000000n", None),
            (b"S", None),
            (b"", None),
            (b"-1S", None),
            (b"1s", None),
            (b"1 S", None),
            (b"\xff\xffS", None),
        ];
        for (value, expected) in rows {
            assert_eq!(parse_grpc_timeout(value), expected, "{value:?}");
        }
    }
}
