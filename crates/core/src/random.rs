//! Random numbers as an argument.

use core::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// A source of random numbers, handed in by whoever drives the engine.
///
/// Schedules need speed and independence, not secrecy. Nothing asks for a number before a first
/// retry is due, so an implementation may seed itself on the first call.
pub trait Random {
    /// The next 64 uniformly distributed bits.
    fn next_u64(&mut self) -> u64;

    /// A duration drawn uniformly from `low..=high`, in nanoseconds; `low` when `high` is not above
    /// it.
    #[inline]
    fn between(&mut self, low: Duration, high: Duration) -> Duration {
        let Some(span) = high.checked_sub(low) else { return low };
        let steps = span.as_nanos();
        let drawn = match u64::try_from(steps) {
            // The high half of a 64 × 64 bit product maps the draw onto 0..=span without a division.
            Ok(steps) => {
                let product = u128::from(self.next_u64()) * (u128::from(steps) + 1);
                nanoseconds(product >> 64)
            }
            // Spans beyond 584 years: 34 random bits of the at most 94 that a duration has.
            Err(_) => nanoseconds(((u128::from(self.next_u64()) >> 30) * (steps + 1)) >> 34),
        };
        low.saturating_add(drawn)
    }
}

impl<R: Random + ?Sized> Random for &mut R {
    #[inline]
    fn next_u64(&mut self) -> u64 {
        (**self).next_u64()
    }
}

/// A duration of this many nanoseconds, which are at most those of `Duration::MAX`.
#[inline]
fn nanoseconds(nanoseconds: u128) -> Duration {
    let seconds = u64::try_from(nanoseconds / NANOS_PER_SECOND).unwrap_or(u64::MAX);
    let rest = u32::try_from(nanoseconds % NANOS_PER_SECOND).unwrap_or(0);
    Duration::new(seconds, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives the same number again and again.
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
    fn a_range_upside_down_gives_its_low_end() {
        let low = Duration::from_secs(2);
        assert_eq!(Always(9).between(low, Duration::from_secs(1)), low);
    }
}
