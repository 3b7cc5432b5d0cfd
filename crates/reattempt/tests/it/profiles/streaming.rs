//! Tests of the rules for reconnecting a stream: each kind of failure has its own count, from call to call.

use std::cell::RefCell;
use std::time::Duration;

use reattempt::schedule::{Delays, Failure, FailureKind, NextRetry, Reconnecting, Schedule};
use reattempt::{RetryBudget, StopReason, Verdict, profile, retry};

use crate::profiles::support::{Always, fail_for_good, ms, secs};

const LOST: Failure = Failure::new(FailureKind::Network);
const REFUSED: Failure = Failure::new(FailureKind::Connect);
const SILENT: Failure = Failure::new(FailureKind::Timeout);
const BROKEN: Failure = Failure::new(FailureKind::Server).with_code(503);
const CALM: Failure = Failure::new(FailureKind::Throttled).with_code(420);

fn delays<const N: usize>(failures: [Failure; N]) -> [Duration; N] {
    let handle = Reconnecting::new(profile::twitter_streaming().schedule);
    // No random number is drawn, so the value does not matter.
    failures.map(|failure| handle.after(failure, &mut Always(7)).unwrap())
}

#[test]
fn the_first_time_at_once_and_then_by_kind() {
    assert_eq!(
        delays([LOST, REFUSED, LOST, BROKEN, SILENT, BROKEN, CALM, CALM, LOST, CALM, BROKEN]),
        [ms(0), ms(250), ms(500), secs(5), ms(750), secs(10), secs(60), secs(120), ms(1000), secs(240), secs(20)]
    );
}

#[test]
fn each_kind_has_its_own_cap_or_none() {
    let network = delays([LOST; 100]);
    assert_eq!(network[63..67], [15_750, 16_000, 16_000, 16_000].map(ms));
    assert_eq!(network[99], secs(16));
    let http = delays([BROKEN; 20]);
    assert_eq!(http[6..9], [160, 320, 320].map(secs));
    assert_eq!(http[19], secs(320));
    let calm = delays([CALM; 20]);
    assert_eq!(calm[1..4], [60, 120, 240].map(secs));
    assert_eq!(calm[19], secs(60 << 18), "half a year and still growing");
}

#[test]
fn what_call_of_its_own_counts_ends_with_it() {
    let schedule = profile::twitter_streaming().schedule;
    for _ in 0..3 {
        let mut call = schedule.delays();
        let mut next = |number| call.next_delay(&NextRetry::new(number, BROKEN), &mut Always(0)).unwrap();
        assert_eq!([0, 1, 2].map(&mut next), [0, 5, 10].map(secs));
    }
}

#[test]
fn default_budget_ends_quick_retries() {
    for profile in [profile::go_backoff_linear().shared(), profile::cenkalti().shared()] {
        let budget = RetryBudget::default();
        let ended = fail_for_good(&profile, Duration::ZERO, &budget, &mut Always(0));
        assert_eq!((ended.retries, ended.reason), (3, StopReason::BudgetExhausted));
    }
}

/// The owner of a stream reads it in a retried operation, and reports when it works.
#[tokio::test(start_paused = true)]
async fn stream_dropped_at_once_does_not_work() {
    // The outcome of each connection: none, or this many messages, and what ends it.
    let connections = [
        (None, LOST),
        (Some(0), LOST),
        (Some(0), LOST),
        (Some(3), LOST),
        (None, BROKEN),
        (None, CALM),
        (Some(0), LOST),
    ];
    let connections = RefCell::new(connections.into_iter());
    let profile = profile::twitter_streaming().map(Reconnecting::new);
    let reconnecting = profile.schedule.clone();
    let mut waited = Vec::new();
    let read = || {
        let connection = connections.borrow_mut().next();
        let reconnecting = &reconnecting;
        async move {
            let Some((messages, end)) = connection else { return Ok(()) };
            for _ in 0..messages.unwrap_or(0) {
                reconnecting.reset();
            }
            Err(end)
        }
    };
    let judge = |failure: &Failure| Verdict::Transient(*failure);
    let ended = retry(profile, read).classify(judge).notify(|_, delay| waited.push(delay)).await;
    assert!(ended.is_ok());
    assert_eq!(waited, [0, 250, 500, 0, 5000, 60_000, 250].map(ms));
}
