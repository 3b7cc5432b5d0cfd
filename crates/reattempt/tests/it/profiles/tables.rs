//! Tests of the sources' own figures, written by hand once more.

use std::time::Duration;

use reattempt::profile;
use reattempt::profile::Profile;
use reattempt::schedule::Schedule;

use crate::profiles::support::{bounds, ms, secs};

const NO_LIMIT: u32 = u32::MAX;

fn limits<S>(profile: &Profile<S>) -> (u32, Option<Duration>) {
    (profile.max_attempts, profile.max_elapsed)
}

/// Returns the bounds of the first delays, in milliseconds.
fn in_ms(schedule: &impl Schedule, count: u32) -> Vec<(u128, u128)> {
    let bounds = bounds(schedule, count).into_iter();
    bounds.map(|(low, high)| (low.as_millis(), high.as_millis())).collect()
}

#[test]
fn cenkalti_to_the_nanosecond() {
    let expected = [
        (250_000_000, 750_000_000),
        (375_000_000, 1_125_000_000),
        (562_500_000, 1_687_500_000),
        (843_750_000, 2_531_250_000),
        (1_265_625_000, 3_796_875_000),
        (1_898_437_500, 5_695_312_500),
        (2_847_656_250, 8_542_968_750),
        (4_271_484_375, 12_814_453_125),
        (6_407_226_562, 19_221_679_687),
    ];
    for profile in [profile::cenkalti(), profile::cenkalti_short()] {
        let seen = bounds(&profile.schedule, 9);
        for ((low, high), (lowest, highest)) in seen.into_iter().zip(expected) {
            // The last two end in half a nanosecond.
            assert!(low.as_nanos().abs_diff(lowest) <= 1, "{low:?}");
            assert!(high.as_nanos().abs_diff(highest) <= 1, "{high:?}");
        }
        let far = bounds(&profile.schedule, 1000)[999];
        assert_eq!(far, (secs(30), secs(90)), "at the cap it is still scattered");
    }
    assert_eq!(limits(&profile::cenkalti()), (NO_LIMIT, Some(secs(900))));
    assert_eq!(limits(&profile::cenkalti_short()), (NO_LIMIT, Some(secs(2))));
}

#[test]
fn cenkalti_by_the_length_of_calls() {
    let quick = profile::cenkalti_quick();
    assert_eq!(in_ms(&quick.schedule, 4), [(25, 75), (50, 150), (75, 225), (75, 225)]);
    assert_eq!(limits(&quick), (NO_LIMIT, Some(ms(250))));
    let medium = profile::cenkalti_medium();
    assert_eq!(in_ms(&medium.schedule, 5)[3..], [(168, 506), (250, 750)]);
    assert_eq!(limits(&medium), (NO_LIMIT, Some(secs(1))));
    let slow = profile::cenkalti_slow();
    assert_eq!(in_ms(&slow.schedule, 6)[4..], [(800, 2400), (1500, 4500)]);
    assert_eq!(limits(&slow), (NO_LIMIT, Some(secs(10))));
}

#[test]
fn go_backoff() {
    let linear = profile::go_backoff_linear();
    assert_eq!(in_ms(&linear.schedule, 65)[62..], [(15_750, 15_750), (16_000, 16_000), (16_000, 16_000)]);
    let exponential = profile::go_backoff_exponential();
    let expected = [5, 10, 20, 40, 80, 160, 320, 320].map(|s| (secs(s), secs(s)));
    assert_eq!(bounds(&exponential.schedule, 8), expected);
    let uncapped = profile::go_backoff_uncapped();
    assert_eq!(bounds(&uncapped.schedule, 11)[10].0, secs(1024 * 60));
    let full = profile::go_backoff_full_jitter();
    assert_eq!(in_ms(&full.schedule, 6)[4..], [(0, 480_000), (0, 600_000)]);
    for limits in [limits(&linear), limits(&exponential), limits(&uncapped), limits(&full)] {
        assert_eq!(limits, (NO_LIMIT, None));
    }
}

#[test]
fn retryablehttp() {
    let profile = profile::retryablehttp();
    let expected = [1, 2, 4, 8, 16, 30, 30].map(|s| (secs(s), secs(s)));
    assert_eq!(bounds(&profile.schedule, 7), expected);
    assert_eq!(limits(&profile), (5, None));
    let linear = profile::retryablehttp_linear();
    let expected = [1, 2, 3, 4].map(|n| (secs(n), secs(30 * n)));
    assert_eq!(bounds(&linear.schedule, 4), expected);
    assert_eq!(limits(&linear), (5, None));
}

#[test]
fn aws_stripe_and_google() {
    let aws = profile::aws();
    assert_eq!(in_ms(&aws.schedule, 6)[4..], [(0, 16_000), (0, 20_000)]);
    assert_eq!(limits(&aws), (3, None));
    assert_eq!(aws.budget.unwrap().balance("s3.example"), 500.0);
    let stripe = profile::stripe();
    let expected = [(0, 500), (0, 1000), (0, 2000), (0, 4000), (0, 4000)];
    assert_eq!(in_ms(&stripe.schedule, 5), expected);
    assert_eq!(limits(&stripe), (3, None));
    let google = profile::google();
    let expected = [1, 2, 4, 8, 16].map(|s| (secs(s), secs(s + 1)));
    assert_eq!(bounds(&google.schedule, 10), expected);
    assert_eq!(limits(&google), (6, None));
}

#[test]
fn the_standard_one_is_the_default() {
    let profile = profile::standard();
    assert_eq!(in_ms(&profile.schedule, 8)[4..], [(0, 1600), (0, 3200), (0, 5000), (0, 5000)]);
    assert_eq!(limits(&profile), (3, Some(secs(30))));
    assert_eq!(profile.budget.unwrap().balance("example.com"), 10.0);
    let policy = reattempt::RetryPolicy::http();
    assert_eq!(policy.limits(), policy.clone().profile(profile::standard()).limits());
}

#[test]
fn no_other_has_a_budget() {
    for (name, profile) in profile::all() {
        assert_eq!(profile.budget.is_some(), ["standard", "aws"].contains(&name), "{name}");
    }
}
