//! Properties of every valid schedule: nothing panics, and no delay is out of bounds.

use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Random, Schedule};
use reattempt_schedule_exponential::{Exponential, TruncatedExponential};
use reattempt_testing::{Always, Seeded, first};

/// Any duration except zero; short and long ones and the ends are as likely as those between.
fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::from_nanos(1)),
        Just(Duration::from_nanos(u64::MAX / 2)),
        Just(Duration::from_nanos(u64::MAX)),
        Just(Duration::MAX),
        (1..=10_000_000_000_u64).prop_map(Duration::from_nanos),
        (1..=u64::MAX).prop_map(Duration::from_nanos),
        (any::<u64>(), 1..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

/// Any finite number above 0, including subnormal ones; the usual ones are as likely as all others.
fn factors() -> impl Strategy<Value = f64> {
    prop_oneof![
        Just(2.0),
        Just(f64::MAX),
        Just(f64::from_bits(1)),
        1.0..=3.0_f64,
        (1..=f64::MAX.to_bits()).prop_map(f64::from_bits),
    ]
}

/// A base and a cap that is not below it.
fn bases_and_caps() -> impl Strategy<Value = (Duration, Duration)> {
    (durations(), durations()).prop_map(|(one, other)| (one.min(other), one.max(other)))
}

/// Low ends, high ends and everything between.
fn sources(seed: u64) -> [Box<dyn Random>; 3] {
    [Box::new(Always(0)), Box::new(Always(u64::MAX)), Box::new(Seeded::new(seed))]
}

/// Requests delays repeatedly, with arbitrary numbers and previous delays.
fn asked(schedule: &impl Schedule, retries: &[(u32, Option<Duration>)], seed: u64) -> Vec<Duration> {
    let mut delays = Vec::new();
    for mut random in sources(seed) {
        let mut state = schedule.delays();
        for (number, previous) in retries {
            let retry = NextRetry::new(*number, Failure::new(FailureKind::Server)).after(*previous);
            delays.extend(state.next_delay(&retry, random.as_mut()));
        }
    }
    delays
}

fn retries() -> impl Strategy<Value = Vec<(u32, Option<Duration>)>> {
    let numbers = prop_oneof![0..200_u32, Just(u32::MAX), any::<u32>()];
    prop::collection::vec((numbers, prop::option::of(durations())), 0..200)
}

fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..<_>::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_interval_never_passes_the_cap(
        (base, cap) in bases_and_caps(),
        factor in factors(),
        retries in retries(),
        seed: u64,
    ) {
        let set = |schedule: Exponential| schedule.factor(factor).max_delay(cap);
        for schedule in [
            set(Exponential::no_jitter(base)),
            set(Exponential::full_jitter(base)),
            set(Exponential::equal_jitter(base)),
        ] {
            let delays = asked(&schedule, &retries, seed);
            prop_assert_eq!(delays.len(), 3 * retries.len());
            prop_assert!(delays.iter().all(|delay| *delay <= cap), "{:?} in {:?}", schedule, delays);
        }
    }

    #[test]
    fn the_first_interval_is_the_base(base in durations(), factor in factors()) {
        let schedule = Exponential::no_jitter(base).factor(factor);
        prop_assert_eq!(first(1, &schedule, &mut Always(0)), [base]);
        let schedule = Exponential::full_jitter(base).factor(factor).no_max_delay();
        let highest = first(1, &schedule, &mut Always(u64::MAX))[0];
        prop_assert!(highest <= base && base - highest <= base / 1_000_000);
    }

    #[test]
    fn delays_are_monotonic_by_factor(
        (base, cap) in bases_and_caps(),
        factor in factors(),
    ) {
        let schedule = Exponential::no_jitter(base).factor(factor).max_delay(cap);
        let delays = first(2200, &schedule, &mut Always(0));
        for pair in delays.windows(2) {
            let (shorter, longer) = if factor >= 1.0 { (0, 1) } else { (1, 0) };
            prop_assert!(pair[shorter] <= pair[longer]);
        }
    }

    #[test]
    fn doubling_is_exact(base in durations(), cap in durations(), steps in 0..200_usize) {
        let cap = cap.max(base);
        let delays = first(steps, &Exponential::no_jitter(base).max_delay(cap), &mut Always(0));
        let mut expected = base;
        for delay in delays {
            prop_assert_eq!(delay, expected);
            expected = expected.saturating_mul(2).min(cap);
        }
    }

    #[test]
    fn whole_factors_are_exact(base in 1..=(1_u64 << 52), factor in 1..=9_u32, cap in durations()) {
        // As long as a float represents the power of the factor exactly.
        let powers = (0..).map(|n| u128::from(factor).pow(n)).take_while(|power| *power < 1 << 53);
        let powers: Vec<u128> = powers.take(200).collect();
        let base = Duration::from_nanos(base);
        let cap = cap.max(base);
        let schedule = Exponential::no_jitter(base).factor(f64::from(factor));
        let delays = first(powers.len(), &schedule.max_delay(cap), &mut Always(0));
        for (delay, power) in delays.iter().zip(powers) {
            prop_assert_eq!(delay.as_nanos(), (base.as_nanos() * power).min(cap.as_nanos()));
        }
    }

    #[test]
    fn symmetric_delays_stay_in_their_part(
        (base, cap) in bases_and_caps(),
        factor in factors(),
        randomisation in 0.0..=1.0_f64,
        retries in retries(),
        seed: u64,
    ) {
        let schedule = Exponential::symmetric(base, randomisation);
        let schedule = schedule.factor(factor).max_delay(cap);
        // Beyond a float's resolution, the end of the range is not exact.
        let spread = cap.as_secs_f64() * randomisation * 1.000_001 + 1e-9;
        let longest = Duration::try_from_secs_f64(spread)
            .map_or(Duration::MAX, |spread| cap.saturating_add(spread));
        let delays = asked(&schedule, &retries, seed);
        prop_assert_eq!(delays.len(), 3 * retries.len());
        prop_assert!(delays.iter().all(|delay| *delay <= longest));
        let delays = asked(&schedule.clamp_jitter(), &retries, seed);
        prop_assert!(delays.iter().all(|delay| *delay <= cap));
    }

    #[test]
    fn decorrelated_stays_between_base_and_cap(
        (base, cap) in bases_and_caps(),
        retries in retries(),
        seed: u64,
    ) {
        let schedule = Exponential::decorrelated(base).max_delay(cap);
        let delays = asked(&schedule, &retries, seed);
        prop_assert_eq!(delays.len(), 3 * retries.len());
        prop_assert!(delays.iter().all(|delay| (base..=cap).contains(delay)));
        let delays = asked(&schedule.no_max_delay(), &retries, seed);
        prop_assert!(delays.iter().all(|delay| *delay >= base));
    }

    #[test]
    fn truncated_delays_never_panic(
        base in durations(),
        part in durations(),
        most: u32,
        retries in retries(),
        seed: u64,
    ) {
        let delays = asked(&TruncatedExponential::new(base, most, part), &retries, seed);
        let allowed = retries.iter().filter(|(number, _)| *number < most).count();
        prop_assert_eq!(delays.len(), 3 * allowed);
        prop_assert!(delays.iter().all(|delay| *delay >= base));
    }
}
