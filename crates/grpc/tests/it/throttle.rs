//! Tests of the throttle, one rule after the other.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{
    Budget, Call, Decision, Delays, FailedAttempt, Failure, FailureKind, Limits, NextRetry, Random, Schedule,
    ServerHint, StopReason, Terms, Verdict,
};
use reattempt_grpc::{RetryThrottle, RetryThrottling, ServiceConfig};

const FAILURE: Failure = Failure::new(FailureKind::Server);

fn throttle(max_tokens: f64, token_ratio: f64) -> RetryThrottle {
    RetryThrottling::new(max_tokens, token_ratio).into()
}

/// Fails attempts until `tokens` thousandths are left, which must come out exactly.
fn drain_to(throttle: &RetryThrottle, tokens: u32) {
    while throttle.tokens_thousandths().unwrap() > tokens {
        throttle.failed();
    }
    assert_eq!(throttle.tokens_thousandths(), Some(tokens));
}

// THR-1
#[test]
fn clones_share_one_bucket_builds_do_not() {
    let throttle = throttle(4.0, 1.0);
    let (clone, other) = (throttle.clone(), self::throttle(4.0, 1.0));
    throttle.failed();
    assert_eq!(clone.tokens_thousandths(), Some(3_000));
    assert_eq!(other.tokens_thousandths(), Some(4_000));
}

// THR-1
#[test]
fn budget_has_one_bucket_for_all() {
    let throttle = throttle(2.0, 1.0);
    throttle.on_failure("a.example", &FAILURE.into(), Duration::ZERO);
    assert!(throttle.acquire("b.example", &FAILURE, Duration::ZERO).is_none());
    assert!(!throttle.is_keyed(), "so no destination is computed");
}

// THR-2
#[test]
fn throttle_starts_full_and_stays_bounded() {
    let throttle = throttle(2.5, 0.7);
    assert_eq!(throttle.tokens_thousandths(), Some(2_500));
    throttle.succeeded();
    assert_eq!(throttle.tokens_thousandths(), Some(2_500));
    let left = [1_500, 500, 0, 0].map(|left| {
        throttle.failed();
        (throttle.tokens_thousandths(), Some(left))
    });
    assert!(left.iter().all(|(is, expected)| is == expected), "{left:?}");
    let gained = [700, 1_400, 2_100, 2_500, 2_500].map(|gained| {
        throttle.succeeded();
        (throttle.tokens_thousandths(), Some(gained))
    });
    assert!(gained.iter().all(|(is, expected)| is == expected), "{gained:?}");
}

// THR-3
#[test]
fn failure_takes_one_token() {
    let throttle = throttle(10.0, 0.1);
    throttle.failed();
    assert_eq!(throttle.tokens_thousandths(), Some(9_000));
    throttle.on_failure("", &FAILURE.into(), Duration::ZERO);
    assert_eq!(throttle.tokens_thousandths(), Some(8_000));
}

// THR-4
#[test]
fn success_adds_ratio_up_to_what_is_missing() {
    let throttle = throttle(10.0, 0.1);
    drain_to(&throttle, 8_000);
    throttle.succeeded();
    assert_eq!(throttle.tokens_thousandths(), Some(8_100));
    throttle.on_success("", 7);
    assert_eq!(throttle.tokens_thousandths(), Some(8_200), "whatever was paid");
    let generous = self::throttle(1.0, 500_000.0);
    drain_to(&generous, 0);
    generous.succeeded();
    assert_eq!(generous.tokens_thousandths(), Some(1_000));
}

// THR-5
#[test]
fn half_throttles_and_a_bit_more_does_not() {
    let throttle = throttle(4.0, 0.001);
    assert!(throttle.failed(), "3 of 4");
    assert!(!throttle.is_throttled());
    assert!(!throttle.failed(), "2 of 4, after the debit");
    assert!(throttle.is_throttled());
    throttle.succeeded();
    assert!(!throttle.is_throttled(), "2.001 of 4");
    // Half of an odd number of thousandths is not a whole number.
    let odd = self::throttle(0.003, 0.001);
    assert!(!odd.failed());
    odd.succeeded();
    assert!(odd.is_throttled(), "1 of 3");
    odd.succeeded();
    assert!(!odd.is_throttled(), "2 of 3");
}

// RET-1
#[test]
fn permanent_failure_costs_if_server_stops() {
    for (hint, left) in [
        (ServerHint::None, 4_000),
        (ServerHint::After(Duration::from_secs(1)), 4_000),
        (ServerHint::Exactly(Duration::from_secs(1)), 4_000),
        (ServerHint::Stop, 3_000),
    ] {
        let throttle = throttle(4.0, 1.0);
        throttle.on_permanent_failure("", hint, 0);
        assert_eq!(throttle.tokens_thousandths(), Some(left), "{hint:?}");
    }
}

// THR-6
#[test]
fn throttled_retries_are_refused_for_free() {
    let throttle = throttle(2.0, 1.0);
    drain_to(&throttle, 1_000);
    for _ in 0..3 {
        assert!(throttle.acquire("", &FAILURE, Duration::MAX).is_none());
    }
    assert_eq!(throttle.tokens_thousandths(), Some(1_000));
}

// trap 11
#[test]
fn permit_costs_and_returns_nothing() {
    let throttle = throttle(10.0, 0.1);
    throttle.failed();
    drop(throttle.acquire("", &FAILURE, Duration::ZERO).unwrap());
    assert_eq!(throttle.acquire("", &FAILURE, Duration::ZERO).unwrap().spend().cost(), 0);
    assert_eq!(throttle.tokens_thousandths(), Some(9_000));
}

// THR-10
#[test]
fn thousand_tenths_are_a_hundred_tokens() {
    let throttle = throttle(1000.0, 0.1);
    drain_to(&throttle, 0);
    (0..1000).for_each(|_| throttle.succeeded());
    assert_eq!(throttle.tokens_thousandths(), Some(100_000));
}

// THR-11
#[test]
fn without_settings_nothing_is_throttled() {
    let config = ServiceConfig::parse("{}").unwrap();
    let throttle = RetryThrottle::new(config.retry_throttling());
    for _ in 0..100 {
        assert!(throttle.failed());
    }
    assert!(!throttle.is_throttled() && Budget::is_full(&throttle));
    assert!(throttle.acquire("", &FAILURE, Duration::ZERO).is_some());
    throttle.succeeded();
    assert_eq!(throttle.tokens_thousandths(), None);
}

#[test]
fn throttle_is_full_if_success_adds_nothing() {
    let throttle = throttle(2.0, 0.5);
    assert!(throttle.is_full());
    throttle.failed();
    assert!(!throttle.is_full());
    throttle.succeeded();
    assert!(!throttle.is_full());
    throttle.succeeded();
    assert!(throttle.is_full());
}

// SC-6
#[test]
fn same_settings_keep_the_bucket_as_it_is() {
    let settings = RetryThrottling::new(7.0, 0.3);
    let throttle = RetryThrottle::new(Some(settings));
    throttle.failed();
    throttle.succeeded();
    throttle.configure(Some(settings));
    assert_eq!(throttle.tokens_thousandths(), Some(6_300));
    throttle.configure(Some(RetryThrottling::new(7.0, 0.5)));
    assert_eq!(throttle.tokens_thousandths(), Some(6_300), "another ratio, the same bucket");
    throttle.succeeded();
    assert_eq!(throttle.tokens_thousandths(), Some(6_800));
}

// SC-6
#[test]
fn new_settings_keep_level_of_all_handles() {
    let throttle = throttle(10.0, 0.1);
    let handle = throttle.clone();
    drain_to(&throttle, 3_000);
    let rows = [(20.0, 6_000), (10.0, 3_000), (1000.0, 300_000), (0.003, 0), (10.0, 0)];
    for (max_tokens, left) in rows {
        throttle.configure(Some(RetryThrottling::new(max_tokens, 1.0)));
        assert_eq!(handle.tokens_thousandths(), Some(left), "{max_tokens}");
        assert!(handle.is_throttled(), "no free refill");
    }
    handle.succeeded();
    assert_eq!(throttle.tokens_thousandths(), Some(1_000));
    throttle.configure(Some(RetryThrottling::new(1.0, 1.0)));
    assert_eq!(throttle.tokens_thousandths(), Some(100));
}

// SC-6
#[test]
fn throttling_is_switched_off_and_on() {
    let throttle = throttle(4.0, 1.0);
    drain_to(&throttle, 0);
    let handle = throttle.clone();
    throttle.configure(None);
    assert!(handle.failed() && !handle.is_throttled());
    assert_eq!(handle.tokens_thousandths(), None);
    throttle.configure(Some(RetryThrottling::default()));
    assert_eq!(handle.tokens_thousandths(), Some(10_000), "a bucket that was not there is full");
}

#[test]
fn throttle_is_shared_and_shows_its_level() {
    fn shared<T: Send + Sync + Clone + 'static>(_: &T) {}
    let throttle = throttle(10.0, 0.1);
    shared(&throttle);
    throttle.failed();
    let shown = "RetryThrottle { tokens_thousandths: Some(9000), .. }";
    assert_eq!(format!("{throttle:?}"), shown);
}

struct AtOnce;

impl Schedule for AtOnce {
    type Delays = NoDelay;

    fn delays(&self) -> NoDelay {
        NoDelay
    }
}

struct NoDelay;

impl Delays for NoDelay {
    fn next_delay(&mut self, _: &NextRetry, _: &mut dyn Random) -> Option<Duration> {
        Some(Duration::ZERO)
    }
}

struct NoRandom;

impl Random for NoRandom {
    fn next_u64(&mut self) -> u64 {
        0
    }
}

/// Does what the retry engine does with the budget after a failed attempt, and returns its decision.
fn after_failure(throttle: &Arc<RetryThrottle>, attempts: u32, hint: ServerHint) -> Option<StopReason> {
    let schedule = AtOnce;
    let mut call = Call::new(&schedule);
    (1..attempts).for_each(|_| call.on_send());
    let classification = Verdict::NotProcessed(FAILURE).with_hint(hint);
    let failed = FailedAttempt::new(classification, "", Duration::ZERO);
    let mut terms = Terms::new(Limits::default());
    terms.repeatable = false;
    match call.failed(&terms, &failed, &schedule, throttle, &mut NoRandom) {
        Decision::Return(reason) => Some(reason),
        decision => {
            assert_ne!(decision, Decision::Resend);
            call.on_send();
            None
        }
    }
}

// RET-1
#[test]
fn last_attempt_and_stop_cost_a_token_each() {
    let throttle = Arc::new(throttle(8.0, 0.1));
    let last = Limits::default().max_attempts;
    assert_eq!(after_failure(&throttle, 1, ServerHint::None), None);
    assert_eq!(throttle.tokens_thousandths(), Some(7_000));
    let ended = after_failure(&throttle, last, ServerHint::None);
    assert_eq!((ended, throttle.tokens_thousandths()), (Some(StopReason::AttemptsExhausted), Some(6_000)));
    let ended = after_failure(&throttle, 1, ServerHint::Stop);
    assert_eq!((ended, throttle.tokens_thousandths()), (Some(StopReason::ServerSaidStop), Some(5_000)));
    let ended = after_failure(&throttle, 1, ServerHint::Exactly(Duration::from_secs(1)));
    assert_eq!((ended, throttle.tokens_thousandths()), (Some(StopReason::BudgetExhausted), Some(4_000)), "PB-6");
}
