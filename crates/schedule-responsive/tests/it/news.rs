//! Tests of old and new outcomes: which may still move the interval.

use crate::support::{THROTTLED, accept, of_the_check, refuse};
use reattempt_core::Schedule;
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::{Never, ms};

fn admissions(pace: &Responsive, count: usize) -> Vec<reattempt_core::SentAt> {
    (0..count).map(|_| pace.on_send()).collect()
}

#[test]
fn twenty_refusals_at_once_move_it_once() {
    let pace = of_the_check();
    for expected in [ms(1), ms(1) * 3 / 2, ms(1) * 9 / 4] {
        for sent_at in admissions(&pace, 20) {
            pace.on_failure(sent_at, &THROTTLED, &mut Never);
            assert_eq!(pace.interval(), expected);
        }
    }
    assert_eq!(pace.metrics().times_up, 3);
}

#[test]
fn twenty_acceptances_at_once_move_it_once() {
    let pace = of_the_check();
    for _ in 0..10 {
        refuse(&pace, &mut Never);
    }
    for sent_at in admissions(&pace, 20) {
        pace.on_success(sent_at, &mut Never);
    }
    assert_eq!(pace.metrics().times_down, 1);
    // The fifteen late outcomes did not start a run either.
    for _ in 0..4 {
        accept(&pace, &mut Never);
    }
    assert_eq!(pace.metrics().times_down, 1);
    accept(&pace, &mut Never);
    assert_eq!(pace.metrics().times_down, 2);
}

#[test]
fn move_outdates_news_of_own_direction_only() {
    let pace = of_the_check();
    for _ in 0..10 {
        refuse(&pace, &mut Never);
    }
    // Sent before a move down, refused after it: there was no move up since, so it counts.
    let early = pace.on_send();
    for _ in 0..5 {
        accept(&pace, &mut Never);
    }
    pace.on_failure(early, &THROTTLED, &mut Never);
    assert_eq!((pace.metrics().times_up, pace.metrics().times_down), (11, 1));

    // Sent before a move up, accepted after it: they count in the run that began with it.
    let early = admissions(&pace, 5);
    refuse(&pace, &mut Never);
    for sent_at in early {
        pace.on_success(sent_at, &mut Never);
    }
    assert_eq!((pace.metrics().times_up, pace.metrics().times_down), (12, 2));
}

#[test]
fn a_late_refusal_does_not_break_a_run() {
    let pace = of_the_check();
    let late = pace.on_send();
    for _ in 0..10 {
        refuse(&pace, &mut Never);
    }
    for _ in 0..4 {
        accept(&pace, &mut Never);
    }
    pace.on_failure(late, &THROTTLED, &mut Never);
    accept(&pace, &mut Never);
    assert_eq!(pace.metrics().times_down, 1);
}
