//! The rule of a fleet's rate limit, a pure function, without processes or a store.

use proptest::prelude::*;
use reattempt_fleet::rate::take;

use crate::rate::rate;

/// The store's time at the beginning, in milliseconds.
const START: i64 = 1_700_000_000_000;

proptest! {
    /// Grants never exceed burst + rate · time, however messages arrive. A clock that goes back grants nothing more.
    #[test]
    fn grants_stay_within_rate_and_burst(
        per_second in 1_u32..5_000, burst in 1_u32..1_000,
        steps in prop::collection::vec((-500_i64..500, 0_u32..200), 1..200),
    ) {
        let rate = rate(per_second, burst);
        let (mut now, mut latest, mut granted) = (START, START, 0);
        let (mut state, _) = take(None, START.unsigned_abs(), rate, 0);
        for (passed, wanted) in steps {
            // By less than the time to live, which makes it an error of the clock.
            now = (now + passed).max(latest - 20_000);
            latest = latest.max(now);
            let (next, answer) = take(Some(state), now.unsigned_abs(), rate, wanted);
            prop_assert!(answer <= wanted);
            (state, granted) = (next, granted + i64::from(answer));
            let most = i64::from(burst) * 1000 + i64::from(per_second) * (latest - START);
            prop_assert!(granted * 1000 <= most, "{granted} of {most}");
        }
    }
}

/// A store may forget a bucket once time has filled it, and 20 s later.
#[test]
fn full_buckets_live_20_s() {
    assert_eq!(rate(100, 20).time_to_live(), 20_200);
    assert_eq!(rate(3, 100_000).time_to_live(), 33_353_333);
}

/// A clock that goes back by the time to live has to catch up. One that goes back further was wrong before.
#[test]
fn clock_error_ends_at_the_time_to_live() {
    let (rate, start) = (rate(100, 20), 100_000);
    let (empty, granted) = take(None, start, rate, 20);
    assert_eq!(granted, 20);
    let granted_after_a_second = |back: u64| {
        let (state, granted) = take(Some(empty), start - back, rate, 20);
        assert_eq!(granted, 0);
        take(Some(state), start - back + 1000, rate, 20).1
    };
    assert_eq!(granted_after_a_second(20_200), 0);
    assert_eq!(granted_after_a_second(20_201), 20);
}
