//! A parser that reads JSON numbers as integers, because a float would lose digits.

/// A JSON number, scaled by a power of ten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    /// The number of whole units, saturated.
    pub(crate) units: u64,
    /// `true` if no digit was cut off.
    pub(crate) exact: bool,
}

impl Decimal {
    /// Parses a number in JSON's grammar, in units of 10^−`places`.
    ///
    /// Digits below one unit are cut off, not rounded. Returns `None` for numbers below zero.
    pub(crate) fn parse(text: &str, places: u8) -> Option<Self> {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = whole.bytes().chain(fraction.bytes());
        if negative && digits.clone().any(|digit| digit != b'0') {
            return None;
        }
        // An exponent beyond an i64 moves the point past every digit that a text can hold.
        let far = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        let exponent = exponent.parse().unwrap_or(far);
        let whole = i64::try_from(whole.len()).unwrap_or(i64::MAX);
        let kept = whole.saturating_add(i64::from(places)).saturating_add(exponent).max(0);
        let kept = usize::try_from(kept).unwrap_or(usize::MAX);
        let exact = digits.clone().skip(kept).all(|digit| digit == b'0');
        let mut units = 0_u64;
        let mut left = kept;
        for digit in digits.take(kept) {
            units = units.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
            left -= 1;
        }
        while left > 0 && units > 0 && units < u64::MAX {
            units = units.saturating_mul(10);
            left -= 1;
        }
        Some(Self { units, exact })
    }

    /// Parses a whole number. Returns `None` for any other text.
    pub(crate) fn whole(text: &str) -> Option<u64> {
        Self::parse(text, 0).filter(|number| number.exact).map(|number| number.units)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thousandths(text: &str) -> Option<(u64, bool)> {
        Decimal::parse(text, 3).map(|number| (number.units, number.exact))
    }

    #[test]
    fn decimals_past_the_last_place_are_cut_off() {
        let rows = [
            ("0", Some((0, true))),
            ("-0.0", Some((0, true))),
            ("0.1", Some((100, true))),
            ("0.29", Some((290, true))),
            ("0.5466", Some((546, false))),
            ("0.9999999999999999999999", Some((999, false))),
            ("1e-3", Some((1, true))),
            ("1E-4", Some((0, false))),
            ("12.5e1", Some((125_000, true))),
            ("1e+2", Some((100_000, true))),
            ("0.0001e1", Some((1, true))),
            ("1000.0001", Some((1_000_000, false))),
            ("-0.001", None),
            ("-1e-99", None),
        ];
        for (text, expected) in rows {
            assert_eq!(thousandths(text), expected, "{text}");
        }
    }

    #[test]
    fn huge_numbers_end_soon_and_saturate() {
        let most = Some((u64::MAX, true));
        assert_eq!(thousandths("1e999999999"), most);
        assert_eq!(thousandths("1e99999999999999999999999999"), most);
        assert_eq!(thousandths("18446744073709551.615"), most);
        assert_eq!(thousandths("0e99999999999999999999999999"), Some((0, true)));
        assert_eq!(thousandths("1e-99999999999999999999999999"), Some((0, false)));
        assert_eq!(thousandths(&"9".repeat(100_000)), most);
    }

    #[test]
    fn only_whole_numbers_are_whole() {
        let rows = [("3", Some(3)), ("3.0", Some(3)), ("30e-1", Some(3)), ("0.3e1", Some(3))];
        for (text, expected) in rows {
            assert_eq!(Decimal::whole(text), expected, "{text}");
        }
        for text in ["3.5", "3.00000000000000000001", "-3", "1e-1"] {
            assert_eq!(Decimal::whole(text), None, "{text}");
        }
    }
}
