//! Tests of the number of retries and the duration of a failing call, for the three profiles by call length, beside the
//! estimates of their source.
//!
//! The estimates are 3–4 retries and 250–380 ms, at most 5 and 1–1.5 s, 8–9 and 10–14 s. They cannot hold here: a delay
//! that would exceed the limit is not waited for, so no call is longer than its limit plus one attempt. They describe a
//! library that checks the time only after a wait, and counts attempts, not retries. The second test shows that.

use std::collections::BTreeMap;
use std::time::Duration;

use reattempt::budget::Unlimited;
use reattempt::profile::Profile;
use reattempt::schedule::{Delays, Exponential, NextRetry, Random, Schedule};
use reattempt::{StopReason, profile};

use crate::profiles::support::{Always, FAILURE, Seeded, fail_for_good, ms};

const CALLS: u32 = 20_000;

/// The numbers of retries with their share in percent, and the shortest and the longest call in milliseconds.
type Envelope = (&'static [(u32, u32)], u64, u64);

fn profiles() -> [(Profile<Exponential>, Duration); 3] {
    [(profile::cenkalti_quick(), ms(30)), (profile::cenkalti_medium(), ms(100)), (profile::cenkalti_slow(), ms(300))]
}

/// Returns the share of calls in percent, rounded.
fn percent(calls: u32) -> u32 {
    (100 * calls + CALLS / 2) / CALLS
}

#[test]
fn envelopes_of_quick_medium_and_slow_calls() {
    let expected: [Envelope; 3] = [
        (&[(1, 12), (2, 88), (3, 0)], 100, 280),
        (&[(2, 0), (3, 95), (4, 5)], 600, 1100),
        (&[(5, 1), (6, 79), (7, 20), (8, 0)], 5500, 10_300),
    ];
    for ((profile, attempt), (shares, shortest, longest)) in profiles().iter().zip(expected) {
        let mut random = Seeded(20_260_101);
        let mut seen = BTreeMap::new();
        for _ in 0..CALLS {
            let ended = fail_for_good(profile, *attempt, &Unlimited, &mut random);
            assert_eq!(ended.reason, StopReason::ElapsedExhausted);
            assert!(ended.elapsed >= ms(shortest), "{ended:?}");
            assert!(ended.elapsed <= ms(longest), "{ended:?}");
            *seen.entry(ended.retries).or_insert(0) += 1;
        }
        for (retries, calls) in seen {
            let share = shares.iter().find(|(number, _)| *number == retries);
            let (_, share) = share.unwrap_or_else(|| panic!("{calls} calls of {retries} retries"));
            assert!(percent(calls).abs_diff(*share) <= 1, "{retries}: {calls}");
        }
    }
}

/// Both ends of each envelope are reached if every delay is as long or as short as possible.
#[test]
fn the_ends_of_the_envelopes() {
    let ends = profiles().map(|(profile, attempt)| {
        [0, u64::MAX].map(|draw| fail_for_good(&profile, attempt, &Unlimited, &mut Always(draw)).retries)
    });
    assert_eq!(ends, [[3, 1], [4, 2], [8, 5]]);
}

#[test]
fn estimates_count_attempts_checked_late() {
    // Minimum and maximum attempts with their share in percent; minimum and maximum time in ms with theirs.
    let estimates =
        [((3, 4, 100), (250, 380, 63)), ((1, 5, 100), (1000, 1500, 95)), ((8, 9, 97), (10_000, 14_000, 97))];
    for ((profile, attempt), (attempts, time)) in profiles().iter().zip(estimates) {
        let mut random = Seeded(20_260_101);
        let (mut in_number, mut in_time) = (0, 0);
        for _ in 0..CALLS {
            let (number, elapsed) = wait_first_and_look_after(profile, *attempt, &mut random);
            in_number += u32::from((attempts.0..=attempts.1).contains(&number));
            in_time += u32::from((ms(time.0)..=ms(time.1)).contains(&elapsed));
        }
        assert!(percent(in_number).abs_diff(attempts.2) <= 1, "{in_number}");
        assert!(percent(in_time).abs_diff(time.2) <= 1, "{in_time}");
    }
}

/// Returns the attempts and the length of a call whose limit is checked only after it has passed.
fn wait_first_and_look_after(
    profile: &Profile<Exponential>,
    attempt: Duration,
    random: &mut dyn Random,
) -> (u32, Duration) {
    let mut delays = profile.schedule.delays();
    let mut elapsed = attempt;
    let mut attempts = 1;
    while elapsed <= profile.max_elapsed.unwrap() {
        let retry = NextRetry::new(attempts - 1, FAILURE);
        elapsed += delays.next_delay(&retry, random).unwrap() + attempt;
        attempts += 1;
    }
    (attempts, elapsed)
}
