//! The rule of a fleet's rate limit, a pure function, without processes or a store.

use proptest::prelude::*;
use reattempt_fleet::rate::{State, Taken, take};

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
            // By at most 5 s: more is an error of the clock.
            now = (now + passed).max(latest - 5_000);
            latest = latest.max(now);
            let (next, answer) = take(Some(state), now.unsigned_abs(), rate, wanted);
            let answer = answer.granted;
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

/// A clock that goes back by up to 5 s has to catch up. One that goes back further was wrong before, whatever the burst
/// is: a bucket of a large burst lives for more than a day.
#[test]
fn clock_set_back_stops_for_5_s_at_most() {
    for rate in [rate(100, 20), rate(1, 100_000)] {
        let start = 200_000_000;
        let (empty, taken) = take(None, start, rate, u32::MAX);
        assert_eq!(taken, Taken { granted: rate.burst(), granted_at: start });
        let after_a_second = |back: u64| {
            let (state, taken) = take(Some(empty), start - back, rate, 1);
            assert_eq!(taken, Taken { granted: 0, granted_at: start });
            take(Some(state), start - back + 1000, rate, 1).1.granted
        };
        assert_eq!([5_000, 5_001, 24 * 60 * 60 * 1000].map(after_a_second), [0, 1, 1]);
    }
}

#[test]
fn texts_of_states_are_strict() {
    let state = State { tokens: 1, at: 2, granted_at: 3 };
    assert_eq!((state.to_string().as_str(), State::parse("1 2 3")), ("1 2 3", Some(state)));
    for text in ["", "1 2", "1 2 3 4", "1 2 3 ", "1 2 -3", "100000000001 1 1", "1 1 1000000000000000"] {
        assert_eq!(State::parse(text), None, "{text:?}");
    }
}
