//! Tests of the decision as a table: each reason to stop, their order, and the delays of retries.

use core::time::Duration;
use std::borrow::ToOwned;

use reattempt_testing::{ms, secs};

use super::scene::{Bucket, FAILURE, Scene, TICK, refusals};
use crate::{Classification, Failure, FailureKind, Limits, NextRetry, SentAt, ServerHint, StopReason, Verdict};

#[test]
fn plain_scene_retries_after_schedule() {
    let scene = Scene::new();
    assert_eq!(scene.outcome(), Ok(secs(1)));
    assert_eq!(scene.bucket.tokens(), 9);
    assert_eq!(scene.bucket.asked(), [("example.com".to_owned(), FAILURE, secs(1000))]);
    assert_eq!(scene.decide().drawn, 0, "no random numbers but the schedule's own");
}

#[test]
fn each_single_reason_stops_a_call() {
    for (reason, scene) in refusals() {
        assert_eq!(scene.outcome(), Err(reason));
    }
}

#[test]
fn success_and_permanent_end_any_call() {
    for (verdict, reason) in [(Verdict::Success, StopReason::Succeeded), (Verdict::Permanent, StopReason::Permanent)] {
        let troubled = refusals().into_iter().map(|(_, scene)| scene);
        for scene in troubled.chain([Scene::new()]) {
            let scene = scene.with(|s| s.failed.classification.verdict = verdict);
            let seen = scene.decide();
            assert_eq!((seen.asked.len(), seen.drawn, scene.bucket.asked().len()), (0, 0, 0));
            assert_eq!(scene.outcome(), Err(reason));
        }
    }
}

/// If several reasons to stop apply, the first in the order is returned. Once that one is removed, the next is
/// returned.
#[test]
fn the_order_of_judgement() {
    let mut scene = Scene::new().with(|s| {
        s.limits.max_attempts = 1;
        s.repeatable = false;
        s.failed.replayable = false;
        s.failed.classification.hint = ServerHint::Stop;
        s.scheduled = None;
        s.failed.elapsed = secs(30);
        s.failed.until_deadline = Some(Duration::ZERO);
        s.bucket = Bucket::of(0);
    });
    let mut expect = |reason, schedule_asked, drawn, mend: fn(&mut Scene)| {
        let seen = scene.decide();
        assert_eq!((seen.asked.len(), seen.drawn), (schedule_asked, drawn), "{reason:?}");
        let budget_asked = usize::from(reason == StopReason::BudgetExhausted);
        assert_eq!(scene.bucket.asked().len(), budget_asked, "{reason:?}");
        assert_eq!(scene.outcome(), Err(reason));
        mend(&mut scene);
    };
    expect(StopReason::AttemptsExhausted, 0, 0, |s| s.limits.max_attempts = 2);
    expect(StopReason::NotRepeatable, 0, 0, |s| s.repeatable = true);
    expect(StopReason::BodyNotKept, 0, 0, |s| s.failed.replayable = true);
    expect(StopReason::ServerSaidStop, 0, 0, |s| {
        s.failed.classification.hint = ServerHint::After(secs(61));
    });
    expect(StopReason::ScheduleEnded, 1, 0, |s| s.scheduled = Some(ms(1)));
    expect(StopReason::ServerDelayTooLong, 1, 0, |s| {
        s.failed.classification.hint = ServerHint::After(secs(10));
    });
    expect(StopReason::ElapsedExhausted, 1, 0, |s| s.failed.elapsed = Duration::ZERO);
    expect(StopReason::DeadlineExceeded, 1, 0, |s| s.failed.until_deadline = None);
    expect(StopReason::BudgetExhausted, 1, 1, |s| s.bucket = Bucket::of(1));
    assert_eq!(scene.outcome(), Ok(secs(10)));
}

#[test]
fn the_schedule_is_told_all_that_is_known() {
    let scene = Scene::new().with(|s| {
        s.limits.max_attempts = 9;
        s.so_far.attempts = 4;
        s.so_far.previous = Some(ms(70));
        s.failed.sent_at = SentAt(5);
    });
    let told = NextRetry::new(3, FAILURE).after(Some(ms(70))).sent_at(SentAt(5));
    assert_eq!(scene.decide().asked, [told]);
}

#[test]
fn server_delay_replaces_counted_delay() {
    // The server's delay, the random draw, and the resulting delay. The schedule's delay is 1 s.
    for (asked, draw, after) in [
        (secs(10), 0, secs(10)),
        (secs(10), 1 << 63, ms(10_500)),
        (secs(10), u64::MAX, secs(11)),
        (ms(250), u64::MAX, ms(275)),
    ] {
        let scene = Scene::new().asking(asked).with(|s| s.draw = draw);
        assert_eq!(scene.decide().asked, [NextRetry::new(0, FAILURE)]);
        assert_eq!(scene.outcome(), Ok(after), "{asked:?}");
    }
}

#[test]
fn exact_delay_is_neither_jittered_nor_cut() {
    let exactly = |delay| {
        Scene::new().with(|scene| {
            scene.draw = u64::MAX;
            scene.failed.classification.hint = ServerHint::Exactly(delay);
            scene.limits.max_elapsed = None;
        })
    };
    for delay in [Duration::ZERO, secs(4), secs(4567)] {
        let scene = exactly(delay);
        assert_eq!(scene.outcome(), Ok(delay));
        let seen = scene.decide();
        assert_eq!((seen.asked.len(), seen.drawn), (1, 0), "the schedule still counts the retry");
    }
    let late = exactly(secs(31)).with(|scene| scene.limits.max_elapsed = Some(secs(30)));
    assert_eq!(late.outcome(), Err(StopReason::ElapsedExhausted));
}

// RI-4
#[test]
fn least_delay_counts_where_longer() {
    let at_least = |asked, scheduled| {
        Scene::new().with(|scene| {
            scene.draw = u64::MAX;
            scene.failed.classification.hint = ServerHint::AtLeast(asked);
            scene.scheduled = Some(scheduled);
        })
    };
    assert_eq!(at_least(secs(2), secs(5)).outcome(), Ok(secs(5)));
    let longer = at_least(secs(10), secs(5)).outcome().unwrap();
    assert!((secs(10)..=secs(11)).contains(&longer), "{longer:?}");
    let most = Limits::default().max_server_delay;
    let too_long = at_least(most + ms(1), secs(5));
    assert_eq!(too_long.outcome(), Err(StopReason::ServerDelayTooLong));
}

#[test]
fn the_ends_of_each_limit() {
    let ok = |scene: Scene| assert_eq!(scene.outcome(), Ok(secs(1)));
    let refused = |scene: Scene, reason| assert_eq!(scene.outcome(), Err(reason));

    let with_attempts =
        |attempts, most| Scene::new().with(|s| (s.so_far.attempts, s.limits.max_attempts) = (attempts, most));
    refused(with_attempts(1, 0), StopReason::AttemptsExhausted);
    refused(with_attempts(1, 1), StopReason::AttemptsExhausted);
    ok(with_attempts(1, 2));
    refused(with_attempts(2, 2), StopReason::AttemptsExhausted);
    refused(with_attempts(3, 2), StopReason::AttemptsExhausted);
    ok(with_attempts(u32::MAX - 1, u32::MAX));
    refused(with_attempts(u32::MAX, u32::MAX), StopReason::AttemptsExhausted);

    // The limit is 30 s, the delay 1 s.
    let at = |elapsed| Scene::new().with(|s| s.failed.elapsed = elapsed);
    ok(at(secs(29)));
    refused(at(secs(29) + TICK), StopReason::ElapsedExhausted);
    ok(at(secs(29) + TICK).with(|s| s.limits.max_elapsed = None));

    let before = |left| Scene::new().with(|s| s.failed.until_deadline = Some(left));
    ok(before(secs(1) + TICK));
    refused(before(secs(1)), StopReason::DeadlineExceeded);
    refused(before(Duration::ZERO), StopReason::DeadlineExceeded);

    // With both limits exceeded, the tighter one is reported.
    let both = at(secs(30)).with(|s| s.failed.until_deadline = Some(Duration::ZERO));
    refused(both, StopReason::ElapsedExhausted);

    let longest = Scene::new().with(|s| s.limits.max_elapsed = None).asking(secs(60));
    assert_eq!(longest.outcome(), Ok(secs(60)));
    refused(longest.asking(secs(60) + TICK), StopReason::ServerDelayTooLong);
}

/// The random part of a server's delay is clamped to the time limits, and never prevents a retry.
#[test]
fn a_server_delay_is_cut_at_the_time_limits() {
    let scene = Scene::new().asking(secs(10)).with(|s| s.draw = u64::MAX);
    let within = |most| scene.clone().with(|s| s.limits.max_elapsed = Some(most));
    assert_eq!(within(ms(10_500)).outcome(), Ok(ms(10_500)));
    assert_eq!(within(secs(10)).outcome(), Ok(secs(10)));
    assert_eq!(within(secs(10)).decide().drawn, 0, "one delay is left");
    assert_eq!(within(secs(10) - TICK).outcome(), Err(StopReason::ElapsedExhausted));
    assert_eq!(within(secs(12)).outcome(), Ok(secs(11)));

    let before = |left| within(secs(30)).with(|s| s.failed.until_deadline = Some(left));
    assert_eq!(before(secs(12)).outcome(), Ok(secs(11)));
    assert_eq!(before(secs(11)).outcome(), Ok(secs(11) - TICK));
    assert_eq!(before(secs(10) + TICK).outcome(), Ok(secs(10)));
    assert_eq!(before(secs(10)).outcome(), Err(StopReason::DeadlineExceeded));

    let least = within(secs(10)).with(|s| {
        s.failed.classification.hint = ServerHint::AtLeast(secs(10));
        s.failed.elapsed = Duration::ZERO;
    });
    assert_eq!(least.outcome(), Ok(secs(10)));
}

/// The range is bounded before the draw, so no delay is likelier than another.
// trap 17
#[test]
fn trap_17_a_cut_server_delay_stays_spread() {
    let scene = Scene::new().asking(secs(28));
    let middle = scene.with(|s| s.draw = 1 << 63);
    assert_eq!(middle.outcome(), Ok(secs(29)), "half of what is left of 30 s");
}

/// A shared interval that is too long has its own stop reason, but a server's delay does not.
#[test]
fn shared_interval_past_elapsed_has_reason() {
    let shared = Scene::new().with(|s| {
        s.shared = true;
        s.scheduled = Some(secs(31));
    });
    assert_eq!(shared.outcome(), Err(StopReason::IntervalTooLong));
    let hinted = shared.clone().with(|s| s.failed.classification.hint = ServerHint::AtLeast(secs(1)));
    assert_eq!(hinted.outcome(), Err(StopReason::IntervalTooLong));
    assert_eq!(shared.clone().asking(secs(31)).outcome(), Err(StopReason::ElapsedExhausted));
    assert_eq!(shared.with(|s| s.scheduled = Some(secs(30))).outcome(), Ok(secs(30)));
}

// trap 22
#[test]
fn longest_durations_do_not_overflow() {
    let most = Duration::MAX;
    let scene = Scene::new().with(|s| {
        s.scheduled = Some(most);
        s.failed.elapsed = most;
        s.failed.now = most;
        s.so_far.previous = Some(most);
        s.limits.max_elapsed = None;
        s.limits.max_server_delay = most;
        s.draw = u64::MAX;
    });
    assert_eq!(scene.outcome(), Ok(most));
    assert_eq!(scene.clone().asking(most).outcome(), Ok(most));
    assert_eq!(scene.clone().asking(most - TICK).outcome(), Ok(most));
    let limited = scene.clone().with(|s| s.limits.max_elapsed = Some(most - TICK));
    assert_eq!(limited.outcome(), Err(StopReason::ElapsedExhausted));
    assert_eq!(limited.asking(most).outcome(), Err(StopReason::ElapsedExhausted));
    let due = scene.with(|s| s.failed.until_deadline = Some(most));
    assert_eq!(due.outcome(), Err(StopReason::DeadlineExceeded));
}

#[test]
fn unprocessed_is_repeated_if_unrepeatable() {
    let unprocessed = |scene: Scene| {
        scene.with(|s| {
            s.repeatable = false;
            s.failed.classification.verdict = Verdict::NotProcessed(FAILURE);
        })
    };
    assert_eq!(unprocessed(Scene::new()).outcome(), Ok(secs(1)));
    // All other stop reasons still apply.
    for (reason, scene) in refusals() {
        if reason != StopReason::NotRepeatable {
            assert_eq!(unprocessed(scene).outcome(), Err(reason));
        }
    }
}

#[test]
fn the_defaults() {
    let Limits { max_attempts, max_elapsed, max_server_delay } = Limits::default();
    assert_eq!((max_attempts, max_elapsed, max_server_delay), (3, Some(secs(30)), secs(60)));
}

/// A `Retry-After` of zero, or a date that has passed, does not turn backoff off.
#[test]
fn zero_from_the_server_leaves_the_schedule() {
    let scene = Scene::new().asking(Duration::ZERO);
    assert_eq!((scene.outcome(), scene.decide().drawn), (Ok(secs(1)), 0));
    let late = scene.with(|s| s.failed.elapsed = secs(30));
    assert_eq!(late.outcome(), Err(StopReason::ElapsedExhausted));
}

/// Without a response, the retry is sent immediately to another endpoint. It needs a permit from the budget but no
/// delay from the schedule.
// E-18
#[test]
fn unanswered_goes_elsewhere_at_once() {
    let scene = Scene::new().with(|s| s.failed.elsewhere = true);
    let seen = scene.decide();
    assert_eq!((seen.asked.len(), seen.drawn, scene.bucket.asked().len()), (0, 0, 1));
    assert_eq!(scene.outcome(), Ok(Duration::ZERO));
    assert_eq!(scene.with(|s| s.scheduled = None).outcome(), Ok(Duration::ZERO));
    for (reason, scene) in refusals() {
        let scene = scene.with(|s| s.failed.elsewhere = true);
        let expected = match reason {
            // The schedule's delay would have been too long.
            StopReason::ScheduleEnded | StopReason::ElapsedExhausted | StopReason::DeadlineExceeded => {
                Ok(Duration::ZERO)
            }
            reason => Err(reason),
        };
        assert_eq!(scene.outcome(), expected, "{reason:?}");
    }
    let late = |change: fn(&mut Scene)| Scene::new().with(|s| s.failed.elsewhere = true).with(change).outcome();
    let elapsed = late(|s| s.failed.elapsed = secs(30) + TICK);
    assert_eq!(elapsed, Err(StopReason::ElapsedExhausted));
    let deadline = late(|s| s.failed.until_deadline = Some(Duration::ZERO));
    assert_eq!(deadline, Err(StopReason::DeadlineExceeded));
}

/// The delay that a failing server requests binds only an attempt at that server. At another one, the schedule's delay
/// counts, and no delay is too long. Every other hint binds the call.
// C-13, E-23, trap 64
#[test]
fn hint_binds_the_server_that_gave_it() {
    let throttled = Failure::new(FailureKind::Throttled).with_code(429);
    let hints = [
        (ServerHint::After(Duration::ZERO), true),
        (ServerHint::After(secs(10)), true),
        (ServerHint::AtLeast(secs(10)), true),
        (ServerHint::After(secs(120)), true),
        (ServerHint::AtLeast(Duration::MAX), true),
        (ServerHint::Unreadable, true),
        (ServerHint::Exactly(secs(4)), false),
        (ServerHint::Stop, false),
    ];
    for (failure, (hint, own)) in
        hints.map(|hint| (FAILURE, hint)).into_iter().chain(hints.map(|hint| (throttled, hint)))
    {
        let [here, elsewhere, unanswered] =
            [(false, true), (true, true), (true, false)].map(|(elsewhere, responded)| {
                let scene = Scene::new().with(|s| {
                    s.failed.classification = Classification { hint, ..Verdict::Transient(failure).into() };
                    (s.failed.elsewhere, s.failed.responded) = (elsewhere, responded);
                });
                (scene.outcome(), scene.decide().asked.len())
            });
        let expected = if own && failure == FAILURE { (Ok(secs(1)), 1) } else { here };
        assert_eq!(elsewhere, expected, "{hint:?} after {failure}");
        assert_eq!(unanswered, here, "{hint:?} after {failure}");
    }
}

/// A delay that cannot be read is no permission to come back at once: the schedule's is drawn from the upper half of
/// its jitter.
// trap 67
#[test]
fn unreadable_hint_waits_at_upper_half() {
    let delay = |draw, hint| {
        let scene = Scene::new().with(|s| {
            (s.draw, s.jittered) = (draw, true);
            s.failed.classification.hint = hint;
        });
        scene.outcome().unwrap()
    };
    for (draw, plain, upper) in [(0, 0, 500), (1 << 62, 250, 750), (1 << 63, 500, 500), (u64::MAX, 1000, 1000)] {
        assert_eq!(delay(draw, ServerHint::None), ms(plain));
        assert_eq!(delay(draw, ServerHint::Unreadable), ms(upper));
    }
}
