//! Tests of turns: when each may be taken, and the rule that moves the interval between them.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::support::{THROTTLED, accept, refuse};
use reattempt_core::{Delays, Failure, FailureKind, NextRetry, Schedule};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::{Never, ms, secs};

/// Returns turns from 100 ms, which a refusal doubles and two successes shorten to nine tenths.
fn turns() -> Responsive {
    let pace = Responsive::new().initial(ms(100)).up(2.0).randomisation(0.0).threshold(2);
    pace.give_turns();
    pace
}

#[test]
fn turns_are_one_interval_apart() {
    let pace = turns();
    assert_eq!(pace.take_turn(secs(9), 5), Ok(()), "nothing is paced yet");
    refuse(&pace, &mut Never);
    // The first caller waits for one interval, and those behind it for more.
    assert_eq!(pace.turn_due(secs(10), 1), secs(10) + ms(200));
    assert_eq!(pace.take_turn(secs(10), 0), Err(secs(10) + ms(100)));
    assert_eq!(pace.take_turn(secs(10), 1), Err(secs(10) + ms(200)));
    assert_eq!(pace.take_turn(secs(10) + ms(100), 1), Err(secs(10) + ms(200)));
    assert_eq!(pace.take_turn(secs(10) + ms(100), 0), Ok(()));
    assert_eq!(pace.take_turn(secs(10) + ms(100), 0), Err(secs(10) + ms(200)));
    // A turn that is up to 2 ms late does not delay those behind it; a later one does.
    assert_eq!(pace.take_turn(secs(10) + ms(202), 0), Ok(()));
    assert_eq!(pace.take_turn(secs(10) + ms(202), 0), Err(secs(10) + ms(300)));
    assert_eq!(pace.take_turn(secs(20), 0), Ok(()));
    assert_eq!(pace.take_turn(secs(20), 0), Err(secs(20) + ms(98)));
}

#[test]
fn interval_that_grows_delays_next_turn() {
    let pace = turns();
    refuse(&pace, &mut Never);
    assert_eq!(pace.take_turn(secs(1), 0), Err(ms(1100)));
    refuse(&pace, &mut Never);
    assert_eq!(pace.take_turn(ms(1100), 0), Err(ms(1200)));
}

#[test]
fn far_ahead_no_turn_overflows() {
    let pace = turns();
    refuse(&pace, &mut Never);
    let _ = pace.take_turn(Duration::MAX, usize::MAX);
    assert!(pace.turn_due(secs(1), usize::MAX) > secs(1_000_000));
}

/// A step down is a probe. If it is refused, it is undone, and the interval does not grow.
#[test]
fn a_refused_step_down_is_undone() {
    let pace = turns();
    refuse(&pace, &mut Never);
    refuse(&pace, &mut Never);
    accept(&pace, &mut Never);
    assert_eq!(accept(&pace, &mut Never), ms(180));
    assert_eq!(refuse(&pace, &mut Never), ms(200));
    // A second consecutive refusal is a new event.
    assert_eq!(refuse(&pace, &mut Never), ms(400));
}

/// If a call admitted before the step down is refused, the longer interval was already too short, so it grows.
#[test]
fn a_refusal_from_before_a_step_moves_up() {
    let pace = turns();
    refuse(&pace, &mut Never);
    refuse(&pace, &mut Never);
    let early = pace.on_send();
    accept(&pace, &mut Never);
    assert_eq!(accept(&pace, &mut Never), ms(180));
    pace.on_failure(early, &THROTTLED, &mut Never);
    assert_eq!(pace.interval(), ms(400));
}

#[test]
fn successes_from_before_move_do_not_count() {
    let pace = turns();
    refuse(&pace, &mut Never);
    let early = [pace.on_send(), pace.on_send()];
    refuse(&pace, &mut Never);
    for sent_at in early {
        pace.on_success(sent_at, &mut Never);
    }
    assert_eq!(pace.interval(), ms(200));
}

/// Refusals without a success between them are one run. Successes then halve the interval, down to one move above the
/// start of the run.
#[test]
fn after_a_run_of_refusals_successes_halve() {
    let pace = turns();
    for expected in [100, 200, 400, 800, 1600] {
        assert_eq!(refuse(&pace, &mut Never), ms(expected));
    }
    for expected in [800, 400, 200, 200, 180] {
        assert_eq!(accept(&pace, &mut Never), ms(expected));
    }
    // The refusals began at 200 ms, to which the first refusal returned.
    for expected in [200, 400, 800] {
        assert_eq!(refuse(&pace, &mut Never), ms(expected));
    }
    assert_eq!(accept(&pace, &mut Never), ms(400));
    assert_eq!(accept(&pace, &mut Never), ms(400));
}

/// An interval that delays no call is far below the service's own, so it need not grow step by step.
#[test]
fn refusal_of_late_call_starts_from_its_gap() {
    // The interval is 100 ms. One call comes at 1 s, and the next after a longer pause.
    for (pause, expected) in [(100, 200), (402, 800), (1_602, 3_200), (600_000, 3_200)] {
        let pace = turns();
        refuse(&pace, &mut Never);
        accept(&pace, &mut Never);
        assert_eq!(pace.take_turn(ms(900), 0), Err(secs(1)));
        assert_eq!(pace.take_turn(secs(1), 0), Ok(()));
        assert_eq!(pace.take_turn(ms(1_000 + pause), 0), Ok(()));
        assert_eq!(refuse(&pace, &mut Never), ms(expected), "after {pause} ms");
        // This is where this run of refusals began, so no success halves it.
        assert_eq!(accept(&pace, &mut Never), ms(expected));
        assert_eq!(accept(&pace, &mut Never), ms(expected) * 9 / 10);
        // A refused step is undone, and the second refusal in a row doubles, however late the calls are.
        assert_eq!(pace.take_turn(secs(10_000), 0), Ok(()));
        assert_eq!(refuse(&pace, &mut Never), ms(expected));
        assert_eq!(refuse(&pace, &mut Never), ms(expected) * 2);
    }
}

/// After a long outage the pace recovers within eleven successes, where the schedule's rule takes some 700.
#[test]
fn after_an_outage_the_pace_is_back_soon() {
    let pace = turns();
    for _ in 0..20 {
        refuse(&pace, &mut Never);
    }
    assert_eq!(pace.interval(), secs(15 * 60));
    let successes = (1..).find(|_| accept(&pace, &mut Never) <= ms(200));
    assert_eq!(successes, Some(13));
}

#[test]
fn turns_have_defaults_of_their_own() {
    let pace = Responsive::new();
    let clone = pace.clone();
    clone.give_turns();
    assert_eq!(refuse(&pace, &mut Never), Duration::from_micros(10));
    let set = Responsive::new().initial(ms(7));
    set.give_turns();
    assert_eq!(refuse(&set, &mut Never), ms(7));
    // A retry still waits for the schedule's delay, whatever the turns are.
    let retry = NextRetry::new(0, Failure::new(FailureKind::Server));
    assert_eq!(pace.delays().next_delay(&retry, &mut Never), Some(ms(500)));
}

/// However many threads ask, no two take the same turn.
#[test]
fn threads_never_share_a_turn() {
    let pace = turns();
    refuse(&pace, &mut Never);
    let _ = pace.take_turn(secs(1), 0);
    let (clock, taken) = (AtomicU64::new(1000), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let now = clock.fetch_add(1, Ordering::SeqCst);
                    if now > 11_000 {
                        break;
                    }
                    if pace.take_turn(ms(now), 0).is_ok() {
                        taken.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let taken = taken.into_inner();
    assert!((1..=100).contains(&taken), "{taken}");
}
