//! The source of random numbers, which is passed as an argument throughout this crate.

use core::time::Duration;

const NANOS_PER_SECOND: u32 = 1_000_000_000;

/// Durations below this many seconds (544 years) have fewer than 2⁶⁴ nanoseconds.
const NARROW_SECONDS: u64 = 1 << 34;

/// A source of random numbers.
///
/// The numbers must be independent and fast to generate, but need not be cryptographically secure. With most schedules
/// a first-time success draws no number, so an implementation may seed itself lazily.
pub trait Random {
    /// Returns the next 64 uniformly distributed bits.
    fn next_u64(&mut self) -> u64;

    /// Draws a duration uniformly from `low..=high`, to the nanosecond. If `high` is not above `low`, it returns
    /// `low` and draws no number.
    #[inline]
    fn between(&mut self, low: Duration, high: Duration) -> Duration {
        match (narrow(low), narrow(high)) {
            (Some(shortest), Some(longest)) if shortest < longest => {
                // The high half of a 64 × 64 bit product maps the draw onto 0..=span without a division.
                let steps = longest - shortest + 1;
                let product = u128::from(self.next_u64()) * u128::from(steps);
                from_nanos(shortest + u64::try_from(product >> 64).unwrap_or(0))
            }
            _ if low >= high => low,
            _ => between_wide(self.next_u64(), low, high),
        }
    }
}

impl<R: Random + ?Sized> Random for &mut R {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        (**self).next_u64()
    }
}

/// Returns the duration in nanoseconds, if it is certain to fit in 64 bits.
#[inline]
pub(crate) fn narrow(duration: Duration) -> Option<u64> {
    let nanoseconds = |seconds| seconds * u64::from(NANOS_PER_SECOND);
    (duration.as_secs() < NARROW_SECONDS).then(|| nanoseconds(duration.as_secs()) + u64::from(duration.subsec_nanos()))
}

/// Returns the same as [`Duration::from_nanos`], without its division for delays below a second.
#[inline]
pub(crate) fn from_nanos(nanoseconds: u64) -> Duration {
    if nanoseconds < u64::from(NANOS_PER_SECOND) {
        Duration::new(0, u32::try_from(nanoseconds).unwrap_or(0))
    } else {
        Duration::from_nanos(nanoseconds)
    }
}

/// Draws like [`Random::between`], from a range whose nanoseconds need more than 64 bits.
#[cold]
fn between_wide(bits: u64, low: Duration, high: Duration) -> Duration {
    let span = high.saturating_sub(low).as_nanos();
    let drawn = match u64::try_from(span) {
        Ok(_) => (u128::from(bits) * (span + 1)) >> 64,
        // A span beyond 584 years has up to 94 bits. Only 34 random bits are used, so that the product fits in 128.
        Err(_) => ((u128::from(bits) >> 30) * (span + 1)) >> 34,
    };
    let seconds = u64::try_from(drawn / u128::from(NANOS_PER_SECOND)).unwrap_or(u64::MAX);
    let rest = u32::try_from(drawn % u128::from(NANOS_PER_SECOND)).unwrap_or(0);
    low.saturating_add(Duration::new(seconds, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the same number on every call.
    struct Always(u64);

    impl Random for Always {
        fn next_u64(&mut self) -> u64 {
            self.0
        }
    }

    #[test]
    fn both_ends_are_reached_and_never_passed() {
        let spans = [
            (Duration::ZERO, Duration::ZERO),
            (Duration::ZERO, Duration::from_nanos(1)),
            (Duration::from_millis(50), Duration::from_millis(100)),
            (Duration::ZERO, Duration::from_nanos(u64::MAX)),
            (Duration::from_secs(7), Duration::from_secs(u64::MAX)),
            (Duration::ZERO, Duration::MAX),
        ];
        for (low, high) in spans {
            assert_eq!(Always(0).between(low, high), low);
            let top = Always(u64::MAX).between(low, high);
            assert!(top <= high, "{top:?} > {high:?}");
            assert!(high - top <= high / 1_000_000, "{top:?} far below {high:?}");
        }
    }

    #[test]
    fn each_nanosecond_has_its_share() {
        // Values around one second, and around the limit of 64-bit nanoseconds.
        let border = Duration::from_secs(NARROW_SECONDS);
        for low in [Duration::ZERO, Duration::from_secs(1), border] {
            for low in [low, low.saturating_sub(Duration::from_nanos(2))] {
                for steps in [4_u64, 1_000_000_000] {
                    let high = low + Duration::from_nanos(steps - 1);
                    for step in [0, 1, steps / 2, steps - 1] {
                        let first = u64::try_from((u128::from(step) << 64).div_ceil(steps.into()));
                        let expected = low + Duration::from_nanos(step);
                        let mut random = Always(first.unwrap());
                        assert_eq!(random.between(low, high), expected);
                        if step > 0 {
                            random.0 -= 1;
                            let before = expected - Duration::from_nanos(1);
                            assert_eq!(random.between(low, high), before);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn no_choice_draws_nothing() {
        struct Forbidden;
        impl Random for Forbidden {
            fn next_u64(&mut self) -> u64 {
                unreachable!("a random number was drawn")
            }
        }
        for only in [Duration::ZERO, Duration::from_secs(7), Duration::MAX] {
            assert_eq!(Forbidden.between(only, only), only);
            assert_eq!(Forbidden.between(only, Duration::ZERO), only);
        }
    }

    #[test]
    fn a_range_upside_down_gives_its_low_end() {
        let low = Duration::from_secs(2);
        assert_eq!(Always(9).between(low, Duration::from_secs(1)), low);
    }
}
