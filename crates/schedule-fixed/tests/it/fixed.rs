//! Tests of constant, linear and listed delays: tables, errors and the ends of the valid ranges.

use core::time::Duration;

use crate::support::{delay, first};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reattempt_schedule_fixed::{Constant, Linear, List};
use reattempt_testing::{ms, secs};

#[test]
fn constant_is_the_same_for_ever() {
    let schedule = Constant::new(ms(70));
    assert_eq!(first(3, &schedule), [ms(70); 3]);
    assert_eq!(delay(&schedule, u32::MAX), Some(ms(70)));
    assert_eq!(first(2, &Constant::immediate()), [Duration::ZERO; 2]);
}

#[test]
fn linear_grows_by_its_base_by_default() {
    let schedule = Linear::new(ms(250));
    assert_eq!(first(4, &schedule), [250, 500, 750, 1000].map(ms));
    assert_eq!(first(4, &schedule.step(ms(10))), [250, 260, 270, 280].map(ms));
    assert_eq!(first(4, &schedule.max_delay(ms(600))), [250, 500, 600, 600].map(ms));
    assert_eq!(first(4, &schedule.step(Duration::ZERO)), [ms(250); 4]);
}

#[test]
fn a_list_ends_or_repeats_its_last() {
    let delays = [10, 40, 20].map(ms);
    assert_eq!(first(9, &List::ending(delays)), delays);
    assert_eq!(first(5, &List::repeating_last(delays)), [10, 40, 20, 20, 20].map(ms));
    assert_eq!(delay(&List::ending(delays), u32::MAX), None);
    assert_eq!(delay(&List::repeating_last(delays), u32::MAX), Some(ms(20)));
    assert_eq!(first(9, &List::ending([])), []);
}

#[test]
fn a_cap_below_the_base_cuts_the_base() {
    assert_eq!(first(2, &Linear::new(secs(2)).max_delay(secs(1))), [secs(1); 2]);
}

// Without it, all retries of a call would be sent at once.
#[test]
fn a_cap_of_zero_counts_as_a_millisecond() {
    let schedule = Linear::new(ms(250)).max_delay(Duration::ZERO);
    assert_eq!(first(2, &schedule), [ms(1); 2]);
}

#[test]
fn a_base_of_zero_counts_as_a_millisecond() {
    assert_eq!(first(2, &Constant::new(Duration::ZERO)), [ms(1); 2]);
    assert_eq!(first(2, &Linear::new(Duration::ZERO)), [ms(1), ms(2)]);
}

#[test]
fn empty_list_never_retries() {
    assert_eq!(delay(&List::repeating_last([]), 0), None);
}

#[test]
fn debug_output_reads_well() {
    assert_eq!(
        format!("{:?}", Linear::new(ms(250)).max_delay(secs(16))),
        "Linear { base: 250ms, step: 250ms, cap: Some(16s) }"
    );
    assert_eq!(format!("{:?}", Constant::new(secs(1))), "Constant { base: 1s }");
}

// trap 22
#[test]
fn linear_saturates_instead_of_overflow() {
    for (base, step) in [
        (Duration::MAX, Duration::MAX),
        (Duration::MAX, Duration::from_nanos(1)),
        (Duration::from_nanos(1), Duration::MAX),
        (secs(u64::MAX / 2), secs(u64::MAX / 2)),
    ] {
        let schedule = Linear::new(base).step(step);
        assert_eq!(delay(&schedule, 0), Some(base));
        assert_eq!(delay(&schedule, u32::MAX), Some(Duration::MAX));
        assert_eq!(delay(&schedule.max_delay(base), u32::MAX), Some(base));
    }
    assert_eq!(delay(&Linear::new(ms(1)), u32::MAX), Some(ms(1 << 32)));
}

fn durations() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        Just(Duration::MAX),
        any::<u64>().prop_map(Duration::from_nanos),
        (any::<u64>(), 0..1_000_000_000_u32).prop_map(|(s, n)| Duration::new(s, n)),
    ]
}

fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..<_>::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn linear_is_the_formula(base in durations(), step in durations(), cap in durations(), n: u32) {
        // A base of zero counts as a millisecond.
        let base = if base.is_zero() { ms(1) } else { base };
        let cap = cap.max(base);
        let schedule = Linear::new(base).step(step).max_delay(cap);
        let nanoseconds = base.as_nanos() + step.as_nanos() * u128::from(n);
        let expected = nanoseconds.min(cap.as_nanos());
        prop_assert_eq!(delay(&schedule, n).unwrap().as_nanos(), expected);
    }

    #[test]
    fn a_list_is_itself(delays in prop::collection::vec(durations(), 1..50), n: u32) {
        prop_assert_eq!(&first(99, &List::ending(delays.iter().copied())), &delays);
        let endless = List::repeating_last(delays.iter().copied());
        let listed = usize::try_from(n).ok().and_then(|n| delays.get(n)).or(delays.last());
        prop_assert_eq!(delay(&endless, n), listed.copied());
    }
}
