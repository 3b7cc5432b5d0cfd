//! Defects of published retry engines, each with a test that such an engine would fail.

use core::time::Duration;

use reattempt_testing::{ms, secs};

use super::scene::{Bucket, FAILURE, Scene, TICK, refusals};
use crate::{ServerHint, StopReason, Verdict};

// trap 16
#[test]
fn refused_call_has_not_asked_budget() {
    for (reason, scene) in refusals() {
        let level = scene.bucket.tokens();
        assert_eq!(scene.outcome(), Err(reason));
        let asked = scene.bucket.asked().len();
        assert_eq!(asked, usize::from(reason == StopReason::BudgetExhausted), "{reason:?}");
        assert_eq!(scene.bucket.tokens(), level, "{reason:?}");
    }
}

// trap 16
#[test]
fn decision_to_wait_holds_the_token() {
    let scene = Scene::new().with(|s| s.bucket = Bucket::of(1));
    let (after, permit) = scene.decide().decision.unwrap();
    assert_eq!((after, scene.bucket.tokens()), (secs(1), 0));
    assert_eq!(scene.outcome(), Err(StopReason::BudgetExhausted), "while the first one waits");

    drop(permit);
    assert_eq!(scene.bucket.tokens(), 1, "the first one was dropped in its wait");
    assert_eq!(scene.outcome(), Ok(secs(1)));
}

// trap 18
#[test]
fn jitter_is_never_sooner_than_server_asked() {
    let hints = [TICK, TICK * 9, ms(1), ms(250), ms(999), ms(1500), secs(20)];
    for asked in hints {
        for draw in [0, 1, 1 << 32, u64::MAX / 2, u64::MAX] {
            let scene = Scene::new().asking(asked).with(|s| s.draw = draw);
            let after = scene.outcome().unwrap();
            assert!(asked <= after, "{after:?} instead of {asked:?}");
            assert!(after <= asked + asked / 10, "{after:?} instead of {asked:?}");
        }
    }
}

// trap 18
#[test]
fn hint_below_a_second_is_not_cut_to_zero() {
    for asked in [TICK, ms(1), ms(250), ms(999)] {
        assert_eq!(Scene::new().asking(asked).outcome(), Ok(asked));
    }
    assert_eq!(Scene::new().asking(ms(1500)).outcome(), Ok(ms(1500)));
}

// trap 20
#[test]
fn delay_past_limits_stops_and_is_not_cut() {
    let delays = [Duration::ZERO, ms(1), secs(5), secs(20)];
    let times = [Duration::ZERO, ms(1), secs(5), secs(10), secs(25), secs(30), secs(31)];
    for (delay, from_server) in delays.map(|delay| [(delay, false), (delay, true)]).concat() {
        for (elapsed, left) in times.map(|e| times.map(|left| (e, left))).concat() {
            let scene = Scene::new().with(|s| {
                s.failed.elapsed = elapsed;
                s.failed.until_deadline = Some(left);
                s.scheduled = Some(if from_server { Duration::ZERO } else { delay });
            });
            let scene = if from_server { scene.asking(delay) } else { scene };
            let expected = if elapsed + delay > secs(30) {
                Err(StopReason::ElapsedExhausted)
            } else if delay >= left {
                Err(StopReason::DeadlineExceeded)
            } else {
                Ok(delay)
            };
            assert_eq!(scene.outcome(), expected, "{delay:?} at {elapsed:?}, {left:?} left");
        }
    }
}

// trap 20
#[test]
fn hint_beyond_limit_stops_its_call_alone() {
    let scene = Scene::new().with(|s| s.bucket = Bucket::of(1));
    for _ in 0..100 {
        let too_long = scene.clone().asking(secs(31));
        assert_eq!(too_long.outcome(), Err(StopReason::ElapsedExhausted));
        let far_too_long = scene.clone().asking(secs(3600));
        assert_eq!(far_too_long.outcome(), Err(StopReason::ServerDelayTooLong));
    }
    assert_eq!(scene.outcome(), Ok(secs(1)));
}

// trap 24
#[test]
fn hint_makes_no_request_repeatable() {
    for hint in [
        ServerHint::None,
        ServerHint::After(Duration::ZERO),
        ServerHint::After(secs(1)),
        ServerHint::After(Duration::MAX),
        ServerHint::Stop,
    ] {
        let scene = Scene::new().with(|s| {
            s.repeatable = false;
            s.failed.classification.hint = hint;
        });
        assert_eq!(scene.outcome(), Err(StopReason::NotRepeatable), "{hint:?}");
    }
}

// trap 24
#[test]
fn hint_never_makes_permanent_transient() {
    let scene = Scene::new().asking(ms(1));
    let scene = scene.with(|s| s.failed.classification.verdict = Verdict::Permanent);
    assert_eq!(scene.outcome(), Err(StopReason::Permanent));
}

// trap 26
#[test]
fn every_check_precedes_the_first_retry() {
    for attempts in [1, 2, 7] {
        for verdict in [Verdict::Transient(FAILURE), Verdict::NotProcessed(FAILURE)] {
            for (reason, scene) in refusals() {
                let harmless = matches!(verdict, Verdict::NotProcessed(_));
                if harmless && reason == StopReason::NotRepeatable {
                    continue;
                }
                let scene = scene.with(|s| {
                    s.limits.max_attempts = if reason == StopReason::AttemptsExhausted { attempts } else { 10 };
                    s.so_far.attempts = attempts;
                    s.failed.classification.verdict = verdict;
                });
                assert_eq!(scene.outcome(), Err(reason), "after attempt {attempts}");
            }
        }
    }
}
