//! Tests of delays that can be written down: growth, bounds, defaults and error texts.

use core::time::Duration;

use reattempt_core::Schedule;
use reattempt_schedule_exponential::{Exponential, TruncatedExponential};
use reattempt_testing::{Always, Seeded, bounds, first, ms, secs};

#[test]
fn it_doubles_up_to_the_cap_and_stays_there() {
    let schedule = Exponential::no_jitter(ms(100)).max_delay(secs(1));
    let delays = first(7, &schedule, &mut Always(0));
    assert_eq!(delays, [100, 200, 400, 800, 1000, 1000, 1000].map(ms));
    // Flat from n ≥ log2(C/B) = 3.32.
    assert!(first(2000, &schedule, &mut Always(0))[4..].iter().all(|delay| *delay == secs(1)));
}

#[test]
fn uncapped_delays_sum_to_power_of_two() {
    for base in [Duration::from_nanos(1), ms(100), Duration::new(3, 141_592_653)] {
        let schedule = Exponential::no_jitter(base).no_max_delay();
        for k in 0..=60 {
            let sum: u128 = first(k, &schedule, &mut Always(0)).iter().map(Duration::as_nanos).sum();
            assert_eq!(sum, base.as_nanos() * ((1 << k) - 1), "{base:?}, {k} delays");
        }
    }
}

#[test]
fn the_full_jitter_doubles_like_the_others() {
    let plain = Exponential::no_jitter(ms(100)).max_delay(secs(5));
    let jittered = Exponential::full_jitter(ms(100)).max_delay(secs(5));
    let expected: Vec<_> = first(40, &plain, &mut Always(0)).into_iter().map(|t| (Duration::ZERO, t)).collect();
    assert_eq!(bounds(40, &jittered), expected);
    assert_eq!(bounds(40, &Exponential::full_jitter(ms(100)).no_max_delay()).len(), 40);
}

#[test]
fn bounds_of_each_form() {
    let equal = Exponential::equal_jitter(ms(100)).max_delay(ms(250));
    assert_eq!(bounds(3, &equal), [(50, 100), (100, 200), (125, 250)].map(in_ms));
    let symmetric = Exponential::symmetric(ms(100), 0.2).max_delay(ms(250));
    assert_eq!(bounds(3, &symmetric), [(80, 120), (160, 240), (200, 300)].map(in_ms));
    assert_eq!(bounds(3, &symmetric.clamp_jitter()), [(80, 120), (160, 240), (200, 250)].map(in_ms));
}

// BK-4, BK-5
#[test]
fn capped_base_starts_at_cap() {
    let cut = |factor| Exponential::no_jitter(ms(400)).factor(factor).max_delay(ms(250));
    assert_eq!(first(3, &cut(2.0), &mut Always(0)), [250, 250, 250].map(ms));
    assert_eq!(first(4, &cut(0.75), &mut Always(0)), [250_000, 250_000, 225_000, 168_750].map(Duration::from_micros));
    // The jitter comes after the cap.
    let symmetric = Exponential::symmetric(ms(400), 0.2).max_delay(ms(250));
    assert_eq!(bounds(2, &symmetric), [(200, 300), (200, 300)].map(in_ms));
    let full = Exponential::full_jitter(ms(400)).max_delay(ms(250));
    assert_eq!(bounds(2, &full), [(0, 250), (0, 250)].map(in_ms));
}

fn in_ms((low, high): (u64, u64)) -> (Duration, Duration) {
    (ms(low), ms(high))
}

/// The ranges are those in the documentation of `cenkalti/backoff`.
#[test]
fn the_nine_ranges_of_cenkalti() {
    let schedule = Exponential::symmetric(ms(500), 0.5).factor(1.5).max_delay(secs(60));
    let nanoseconds = [
        (250_000_000, 750_000_000),
        (375_000_000, 1_125_000_000),
        (562_500_000, 1_687_500_000),
        (843_750_000, 2_531_250_000),
        (1_265_625_000, 3_796_875_000),
        (1_898_437_500, 5_695_312_500),
        (2_847_656_250, 8_542_968_750),
        (4_271_484_375, 12_814_453_125),
        (6_407_226_563, 19_221_679_687), // the whole nanoseconds within 6.4072265625..19.2216796875
    ];
    let expected = nanoseconds.map(|(low, high)| (Duration::from_nanos(low), Duration::from_nanos(high)));
    assert_eq!(bounds(9, &schedule), expected);
}

#[test]
fn google_waits_five_times_31_seconds() {
    let schedule = TruncatedExponential::default();
    assert_eq!(first(9, &schedule, &mut Always(0)), [1, 2, 4, 8, 16].map(secs));
    let most = [1, 2, 4, 8, 16].map(|n| secs(n) + ms(1000));
    assert_eq!(first(9, &schedule, &mut Always(u64::MAX)), most);
    let drawn = first(9, &schedule, &mut Seeded::new(1));
    let parts: Vec<_> = drawn.iter().zip([1, 2, 4, 8, 16]).map(|(d, n)| *d - secs(n)).collect();
    assert!(parts.windows(2).all(|pair| pair[0] != pair[1]), "drawn afresh: {parts:?}");
}

#[test]
fn other_factors() {
    let tripled = Exponential::no_jitter(ms(1)).factor(3.0).no_max_delay();
    assert_eq!(first(5, &tripled, &mut Always(0)), [1, 3, 9, 27, 81].map(ms));
    let halved = Exponential::no_jitter(ms(8)).factor(0.5);
    assert_eq!(first(4, &halved, &mut Always(0)), [8, 4, 2, 1].map(ms));
    assert_eq!(first(99, &halved, &mut Always(0))[40..], [Duration::ZERO; 59]);
    let from_the_cap = Exponential::no_jitter(secs(8)).max_delay(secs(8)).factor(0.5);
    assert_eq!(first(4, &from_the_cap, &mut Always(0)), [8, 4, 2, 1].map(secs));
    let level = Exponential::no_jitter(ms(8)).factor(1.0);
    assert_eq!(first(3, &level, &mut Always(0)), [8, 8, 8].map(ms));
    // A step of a tenth of a nanosecond is not lost to rounding.
    let slow = Exponential::no_jitter(Duration::from_nanos(1)).factor(1.1);
    assert_eq!(first(26, &slow, &mut Always(0))[25], Duration::from_nanos(11));
}

#[test]
fn default_cap_is_five_seconds_or_base() {
    assert_eq!(first(9, &Exponential::no_jitter(ms(100)), &mut Always(0))[8], secs(5));
    assert_eq!(first(3, &Exponential::no_jitter(secs(60)), &mut Always(0)), [secs(60); 3]);
    let decorrelated = Exponential::decorrelated(secs(60));
    assert_eq!(first(3, &decorrelated, &mut Always(u64::MAX)), [secs(60); 3]);
}

#[test]
fn default_is_full_jitter_100_ms_to_5_s() {
    let default = Exponential::default();
    assert_eq!(default, Exponential::full_jitter(ms(100)).max_delay(secs(5)));
    assert_eq!(
        format!("{default:?}"),
        "Exponential { base: 100ms, factor: 2.0, cap: Some(5s), jitter: Jitter(Full), \
         clamp_jitter: false }"
    );
}

#[test]
fn settings_are_clamped_to_their_ranges() {
    let base = Exponential::full_jitter(ms(100));
    for (factor, clamped) in [
        (0.0, f64::MIN_POSITIVE),
        (-1.0, f64::MIN_POSITIVE),
        (f64::NEG_INFINITY, f64::MIN_POSITIVE),
        (f64::INFINITY, f64::MAX),
        (f64::NAN, 1.0),
    ] {
        assert_eq!(base.factor(factor), base.factor(clamped), "{factor}");
    }
    for (randomisation, clamped) in [(-0.1, 0.0), (1.1, 1.0), (f64::INFINITY, 1.0), (f64::NAN, 0.0)] {
        let symmetric = |randomisation| Exponential::symmetric(ms(100), randomisation);
        assert_eq!(symmetric(randomisation), symmetric(clamped), "{randomisation}");
    }
}

#[test]
fn a_cap_below_the_base_cuts_the_base() {
    let longest = &mut Always(u64::MAX);
    assert_eq!(first(2, &Exponential::no_jitter(secs(2)).max_delay(ms(99)), longest), [ms(99); 2]);
    assert_eq!(first(2, &Exponential::decorrelated(secs(2)).max_delay(ms(99)), longest), [ms(99); 2]);
}

#[test]
fn a_higher_cap_restores_the_base() {
    let schedule = Exponential::full_jitter(secs(2)).clamp_jitter();
    assert_eq!(schedule.max_delay(ms(99)).max_delay(secs(5)), schedule);
    assert_eq!(schedule.max_delay(ms(99)).no_max_delay(), schedule.no_max_delay());
    let decorrelated = Exponential::decorrelated(secs(2));
    assert_eq!(decorrelated.max_delay(ms(99)).max_delay(secs(5)), decorrelated);
}

#[test]
fn a_base_of_zero_counts_as_a_millisecond() {
    let longest = &mut Always(u64::MAX);
    assert_eq!(first(2, &Exponential::full_jitter(Duration::ZERO), longest), [1, 2].map(ms));
    assert_eq!(first(2, &Exponential::decorrelated(Duration::ZERO), longest), [3, 9].map(ms));
}

/// A cap of zero would send all retries at once.
#[test]
fn cap_of_zero_counts_as_a_millisecond() {
    let longest = &mut Always(u64::MAX);
    let zero = Duration::ZERO;
    assert_eq!(first(2, &Exponential::full_jitter(secs(2)).max_delay(zero), longest), [ms(1); 2]);
    assert_eq!(first(2, &Exponential::decorrelated(secs(2)).max_delay(zero), longest), [ms(1); 2]);
}

#[test]
fn without_jitter_nothing_is_drawn() {
    struct Forbidden;
    impl reattempt_core::Random for Forbidden {
        fn next_u64(&mut self) -> u64 {
            panic!("a random number was drawn")
        }
    }
    let _ = Exponential::full_jitter(ms(100)).delays();
    assert_eq!(first(50, &Exponential::no_jitter(ms(100)), &mut Forbidden).len(), 50);
}
