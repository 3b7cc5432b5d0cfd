//! The rule of the bucket in a store.

use proptest::prelude::*;
use reattempt_fleet::rule::{CAPACITY, MOST_TOKENS, State, TIME_TO_LIVE, TOKEN, settle};

/// A message to a bucket, and what happened to the store before.
#[derive(Debug, Clone)]
struct Step {
    /// The movement of the clock in milliseconds.
    clock: i64,
    earned: u64,
    cost: u64,
    is_lost: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let clock = prop_oneof![
        8 => 0..3_000_i64,
        1 => -50_000..50_000_i64,
        1 => -4_000_000_000_000..4_000_000_000_000_i64,
    ];
    let earned = prop_oneof![4 => Just(0), 2 => 0..3 * TOKEN, 1 => 0..1_000 * TOKEN, 1 => any::<u64>()];
    let cost = prop_oneof![4 => Just(TOKEN), 1 => Just(2 * TOKEN), 1 => Just(0)];
    let step = (clock, earned, cost, prop::bool::weighted(0.02));
    let step = step.prop_map(|(clock, earned, cost, is_lost)| Step { clock, earned, cost, is_lost });
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// At every step, by any clock: what is granted is the capacity, once more for each loss of data, half
    /// a token for each second that the store's clock moved, and what was earned.
    // F-1, F-9
    #[test]
    fn granted_tokens_have_a_bound(steps in steps()) {
        let (mut state, mut now) = (None::<State>, 10_000_000_000_000_i64);
        let (mut granted, mut bound) = (0_u128, u128::from(CAPACITY));
        for step in steps {
            now = (now + step.clock).max(0);
            if step.is_lost {
                state = None;
                bound += u128::from(CAPACITY);
            }
            let at = u64::try_from(now).unwrap();
            let before = state.map_or(at, |state| state.at);
            let (next, answer) = settle(state, at, step.earned, step.cost, 0);
            bound += u128::from(next.at.saturating_sub(before)) * 500 + u128::from(step.earned);
            granted += u128::from(if answer { step.cost } else { 0 });
            prop_assert!(granted <= bound, "{granted} of {bound}");
            prop_assert!(next.tokens <= MOST_TOKENS);
            prop_assert_eq!(State::parse(&next.to_string()), Some(next));
            state = Some(next);
        }
    }

    /// A state that was forgotten is the state of a full bucket.
    #[test]
    fn forgotten_state_was_full(tokens in 0..=MOST_TOKENS, at in 0..1_u64 << 45, cost in 0..3 * TOKEN) {
        let now = at + TIME_TO_LIVE;
        prop_assert_eq!(settle(Some(State { tokens, at }), now, 0, cost, 0), settle(None, now, 0, cost, 0));
    }
}

#[test]
fn excess_halves_each_second() {
    let excess = |milliseconds: u64, step: u64| {
        let mut state = State { tokens: CAPACITY + 1024 * TOKEN, at: 0 };
        for now in (step..=milliseconds).step_by(usize::try_from(step).unwrap()) {
            state = settle(Some(state), now, 0, 0, 0).0;
        }
        (state.tokens - CAPACITY) as f64 / 1024e6
    };
    for step in [1, 10, 100, 500, 1000] {
        assert!((excess(1000, step) - 0.5).abs() < 0.005, "{step}: {}", excess(1000, step));
        assert!((excess(3000, step) - 0.125).abs() < 0.005, "{step}: {}", excess(3000, step));
    }
}

#[test]
fn retry_needs_its_whole_cost() {
    let state = |tokens| Some(State { tokens, at: 0 });
    assert!(settle(state(TOKEN), 0, 0, TOKEN, 0).1);
    assert!(!settle(state(TOKEN - 1), 0, 0, TOKEN, 0).1);
    assert!(!settle(state(2 * TOKEN - 1), 0, 0, 2 * TOKEN, 0).1);
    assert!(settle(state(0), 0, TOKEN, TOKEN, 0).1, "what was earned counts at once");
    assert!(settle(state(0), 2_000, 0, TOKEN, 0).1);
    assert!(!settle(state(0), 1_999, 0, TOKEN, 0).1);
}

/// Time fills a bucket and no more.
// F-1
#[test]
fn time_adds_half_a_token_up_to_ten() {
    for (tokens, milliseconds, expected) in [
        (0, 0, 0),
        (0, 1_000, TOKEN / 2),
        (3 * TOKEN, 10_000, 8 * TOKEN),
        (0, 19_999, CAPACITY - 500),
        (0, 20_000, CAPACITY),
        (5 * TOKEN, 39_000, CAPACITY),
        (0, TIME_TO_LIVE, CAPACITY),
        (0, 10 * TIME_TO_LIVE, CAPACITY),
    ] {
        let (next, _) = settle(Some(State { tokens, at: 7 }), 7 + milliseconds, 0, 0, 0);
        assert_eq!(next, State { tokens: expected, at: 7 + milliseconds }, "{tokens} after {milliseconds}");
    }
    assert_eq!((CAPACITY, TIME_TO_LIVE), (10_000_000, 40_000), "ten tokens, and capacity / rate + 20 s");
}

/// A refusal takes no tokens, so a dear retry does not starve cheap ones.
#[test]
fn refused_retry_takes_nothing() {
    let (after_refusal, answer) = settle(Some(State { tokens: TOKEN, at: 0 }), 0, 0, 2 * TOKEN, 0);
    assert_eq!((after_refusal.tokens, answer), (TOKEN, false));
    assert_eq!(settle(Some(after_refusal), 0, 0, TOKEN, 0), (State { tokens: 0, at: 0 }, true));
}

/// Centuries ahead: neither refused for centuries, nor full at once.
#[test]
fn clock_far_ahead_is_replaced() {
    let ahead = Some(State { tokens: 0, at: 10_u64.pow(13) });
    let (next, answer) = settle(ahead, 1_000, 0, TOKEN, 0);
    assert_eq!((next, answer), (State { tokens: 0, at: 1_000 }, false));
    let (next, answer) = settle(Some(State { tokens: 0, at: 2_000 }), 1_000, 0, TOKEN, 0);
    assert_eq!((next, answer), (State { tokens: 0, at: 2_000 }, false), "a little ahead");
    let most = State { tokens: 0, at: 1_000 + TIME_TO_LIVE };
    assert_eq!(settle(Some(most), 1_000, 0, TOKEN, 0), (most, false), "as far as a key lives");
}

#[test]
fn other_texts_are_no_state() {
    for text in ["", " ", "1", "1 ", " 1", "1 2 3", "-1 2", "+1 2", "1 2\n", "1e3 2", "ä 1", "0x1 2"] {
        assert_eq!(State::parse(text), None, "{text:?}");
    }
    assert_eq!(State::parse("100000000001 1"), None, "more than the most");
    assert_eq!(State::parse("1 1000000000000000"), None, "more than Lua's numbers count exactly");
    assert_eq!(State::parse("007 1"), Some(State { tokens: 7, at: 1 }));
}
