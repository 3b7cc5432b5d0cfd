//! Properties of every valid setting and every sequence of events.

use core::time::Duration;

use crate::support::THROTTLED;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reattempt_core::{Random, Schedule, SentAt};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::{Always, Seeded};

/// Nanoseconds above 0; the ends are as likely as the values between.
fn nanos() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1), Just(u64::MAX), 1..=10_000_000_000_u64, 1..=u64::MAX]
}

fn settings() -> impl Strategy<Value = (Responsive, Duration, Duration)> {
    let factors = (
        prop_oneof![Just(1.0), Just(f64::MAX), 1.0..3.0_f64],
        prop_oneof![Just(f64::MIN_POSITIVE), Just(1.0 - f64::EPSILON), 0.1..0.99_f64],
        prop_oneof![Just(0.0), Just(1.0), 0.0..=1.0_f64],
    );
    let spread = prop_oneof![Just(Duration::MAX), nanos().prop_map(Duration::from_nanos)];
    (nanos(), nanos(), factors, spread, 1..4_u32).prop_map(
        |(one, other, (up, down, randomisation), spread, threshold)| {
            let initial = Duration::from_nanos(one.min(other));
            let max = Duration::from_nanos(one.max(other));
            let pace = Responsive::new().initial(initial).max(max);
            let pace = pace.up(up).down(down).threshold(threshold);
            let pace = pace.randomisation(randomisation).max_randomisation(spread);
            (pace, initial, max)
        },
    )
}

#[derive(Debug, Clone, Copy)]
enum Event {
    Refused,
    Accepted,
    /// A refusal with a note taken at some other time.
    RefusedBy(u64),
    AcceptedBy(u64),
    /// A caller asks for its turn at this time.
    Turn(u64),
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        Just(Event::Refused),
        Just(Event::Accepted),
        Just(Event::Accepted),
        any::<u64>().prop_map(Event::RefusedBy),
        any::<u64>().prop_map(Event::AcceptedBy),
        nanos().prop_map(Event::Turn),
    ];
    prop::collection::vec(event, 0..120)
}

fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..<_>::default() }
}

proptest! {
    #![proptest_config(config())]

    // trap 22
    #[test]
    fn interval_is_0_or_within_its_bounds(
        (pace, initial, max) in settings(),
        events in events(),
        seed in any::<u64>(),
        by_turns in any::<bool>(),
    ) {
        if by_turns {
            pace.give_turns();
        }
        let sources: [Box<dyn Random>; 3] =
            [Box::new(Always(0)), Box::new(Always(u64::MAX)), Box::new(Seeded::new(seed))];
        for mut random in sources {
            for event in &events {
                let random = random.as_mut();
                match *event {
                    Event::Refused => pace.on_failure(pace.on_send(), &THROTTLED, random),
                    Event::Accepted => pace.on_success(pace.on_send(), random),
                    Event::RefusedBy(note) => pace.on_failure(SentAt(note), &THROTTLED, random),
                    Event::AcceptedBy(note) => pace.on_success(SentAt(note), random),
                    Event::Turn(now) => {
                        let now = Duration::from_nanos(now);
                        let due = pace.take_turn(now, 0);
                        prop_assert!(due.is_ok() || due.is_err_and(|due| due > now));
                    }
                }
                let interval = pace.interval();
                prop_assert!(
                    interval.is_zero() || (initial..=max).contains(&interval),
                    "{interval:?} is not 0 or within {initial:?}..={max:?}"
                );
            }
        }
    }

    #[test]
    fn plain_refusal_never_shortens_interval(
        (pace, _, max) in settings(),
        refusals in 1..60_usize,
    ) {
        let pace = pace.randomisation(0.0);
        let mut before = Duration::ZERO;
        for _ in 0..refusals {
            pace.on_failure(pace.on_send(), &THROTTLED, &mut Always(0));
            let interval = pace.interval();
            prop_assert!(interval >= before.min(max) && interval <= max);
            before = interval;
        }
    }
}
