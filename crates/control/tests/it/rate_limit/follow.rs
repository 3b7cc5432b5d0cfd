//! Tests of following a server's quota.

use std::time::Duration;

use reattempt_control::{Limit, RateLimit};
use reattempt_core::guard::Resume;

use super::ten;
use crate::guards::{HOST, NOW, SECOND, admit, at, wait, waits_until};

/// Returns the number of calls allowed in these seconds, with an attempt every 10 ms.
fn calls(limit: &RateLimit, seconds: std::ops::Range<u64>) -> usize {
    (seconds.start * 100..seconds.end * 100).filter(|step| limit.allow_at(HOST, at(step * 10))).count()
}

#[test]
fn what_is_left_lasts_until_the_reset() {
    let limit = ten(5);
    limit.follow_at(HOST, 6, SECOND * 10, NOW);
    assert_eq!(calls(&limit, 0..5), 3, "one at once, the others spread");
    assert_eq!(calls(&limit, 5..10), 2);
    assert_eq!(calls(&limit, 10..11), 1 + 9, "the last one, and then the own rate");
}

#[test]
fn nothing_left_stops_until_the_reset() {
    let limit = ten(5);
    limit.follow_at(HOST, 0, SECOND * 2, NOW);
    let mut waiting = wait(&limit, NOW);
    assert_eq!(waiting.poll(NOW), waits_until(at(2100)));
    assert_eq!(waiting.poll(at(2099)), waits_until(at(2100)));
    assert_eq!(waiting.poll(at(2100)), Resume::Admitted);
}

#[test]
fn plenty_left_changes_nothing() {
    let limit = ten(5);
    limit.follow_at(HOST, 25, SECOND * 2, NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), 5.0);
    limit.follow_at(HOST, 24, SECOND * 2, NOW);
    assert_eq!(limit.tokens_at(HOST, NOW), 1.0);
}

#[test]
fn the_latest_answer_holds() {
    let limit = ten(5);
    limit.follow_at(HOST, 0, SECOND * 10, NOW);
    assert!(admit(&limit, at(1)).is_err());
    limit.follow_at(HOST, 1000, SECOND * 10, at(100));
    assert!(admit(&limit, at(200)).is_ok());
    limit.follow_at(HOST, 0, Duration::ZERO, at(300));
    assert!(admit(&limit, at(300)).is_ok(), "a reset that has passed");
}

#[test]
fn an_infinite_rate_follows_too() {
    let limit = RateLimit::new(Limit::INFINITE, 0);
    limit.follow_at(HOST, 11, SECOND * 10, NOW);
    assert_eq!(calls(&limit, 0..10), 11 - 1, "the last one comes with the reset");
    assert_eq!(calls(&limit, 10..11), 100);
}

/// A Unix time that is read as seconds stops calls for an hour, not for decades.
// trap 19
#[test]
fn a_reset_in_decades_is_cut_short() {
    let limit = ten(5).trial_interval(Duration::MAX);
    limit.follow_at(HOST, 0, SECOND * 1_700_000_000, NOW);
    assert!(!limit.allow_at(HOST, NOW + SECOND * 3600));
    assert!(limit.allow_at(HOST, NOW + SECOND * 3601));
    let patient = ten(5).longest_reset(Duration::MAX).trial_interval(Duration::MAX);
    patient.follow_at(HOST, 0, Duration::MAX, NOW);
    assert!(!patient.allow_at(HOST, NOW + SECOND * 3_000_000_000));
    assert!(format!("{patient:?}").contains("follows: true"));
}

/// Reservations follow the implied rate up to the reset, and the own rate afterwards.
#[test]
fn reservations_pass_the_reset() {
    let limit = ten(5);
    limit.follow_at(HOST, 3, SECOND * 10, NOW);
    let delays = [0; 5].map(|_| limit.reserve_at(HOST, NOW).delay_at(NOW).as_millis());
    assert_eq!(delays, [0, 5_000, 10_000, 10_100, 10_200]);
}

/// A response without remaining calls, perhaps sent by mistake, does not stop a client for an hour.
#[test]
fn trial_calls_pass_while_nothing_is_left() {
    let hour = SECOND * 3600;
    let limit = ten(5);
    limit.follow_at(HOST, 0, hour, NOW);
    assert_eq!([0..60, 60..120, 120..180].map(|seconds| calls(&limit, seconds)), [0, 1, 1]);
    limit.follow_at(HOST, 0, hour, at(180_000));
    assert_eq!([180..240, 240..300].map(|seconds| calls(&limit, seconds)), [0, 1]);
    let often = ten(5).trial_interval(SECOND * 10);
    often.follow_at(HOST, 3, hour, NOW);
    assert_eq!(calls(&often, 0..31), 1 + 3, "so do few calls left");
    let never = ten(5).trial_interval(Duration::MAX);
    never.follow_at(HOST, 0, hour, NOW);
    assert!(!never.allow_at(HOST, NOW + hour) && never.allow_at(HOST, NOW + hour + SECOND));
    let slow = RateLimit::new(Limit::every(SECOND * 600), 1);
    slow.follow_at(HOST, 0, hour, NOW);
    assert!(!slow.allow_at(HOST, NOW + SECOND * 599), "the rate is never raised");
    assert!(slow.allow_at(HOST, NOW + SECOND * 600));
    let unlimited = ten(5).trial_interval(Duration::ZERO);
    unlimited.follow_at(HOST, 0, hour, NOW);
    assert_eq!(calls(&unlimited, 0..1), 9, "its own rate");
}

/// A rate that is set below the one implied by the server applies at once.
#[test]
fn lower_rate_ends_the_following() {
    let limit = RateLimit::new(Limit::per_second(10), 1).no_queue();
    assert!(limit.allow_at(HOST, NOW));
    limit.follow_at(HOST, 18_000, SECOND * 3600, NOW);
    limit.set_limit_at(HOST, Limit::per_second(8), NOW);
    let sent = |from: u64| (1..=100).filter(|step| limit.allow_at(HOST, at(from + 100 * step))).count();
    assert_eq!(sent(0), 50, "the quota");
    limit.set_limit_at(HOST, Limit::per_second(1), at(10_000));
    assert_eq!(sent(10_000), 10);
}
