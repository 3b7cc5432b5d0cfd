//! Models of the interval, the turns and the queue of the guard `Pace`: the checker tries every order in which the
//! threads can run, and every value that they may read.
//!
//! Run with `RUSTFLAGS="--cfg loom" cargo test -p reattempt-schedule-responsive --test loom --release`.
#![cfg(loom)]
#![allow(missing_docs, clippy::expect_used, clippy::unwrap_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "only what the models use")]
#[path = "../../../guard/src/pace/queue.rs"]
mod queue;
#[path = "queue.rs"]
mod queue_model;
#[path = "race.rs"]
mod race;
#[path = "../../../guard/src/pace/sync.rs"]
mod sync;
#[path = "turns.rs"]
mod turns;

use loom::thread;
use reattempt_core::{Failure, FailureKind, Random, Schedule, SentAt};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::ms;

const THROTTLED: Failure = Failure::new(FailureKind::Throttled);

struct Never;

impl Random for Never {
    fn next_u64(&mut self) -> u64 {
        panic!("a random number was drawn")
    }
}

/// Returns an interval that starts at 100 ms and is doubled and halved, after this many refusals.
fn pace(threshold: u32, refusals: u32) -> Responsive {
    let pace = Responsive::new().initial(ms(100)).up(2.0).down(0.5);
    let pace = pace.randomisation(0.0).threshold(threshold);
    for _ in 0..refusals {
        refuse(&pace, pace.on_send());
    }
    pace
}

fn refuse(pace: &Responsive, sent_at: SentAt) {
    pace.on_failure(sent_at, &THROTTLED, &mut Never);
}

fn accept(pace: &Responsive, sent_at: SentAt) {
    pace.on_success(sent_at, &mut Never);
}

fn spawn(pace: &Responsive, sent_at: SentAt, act: fn(&Responsive, SentAt)) -> thread::JoinHandle<()> {
    let pace = pace.clone();
    thread::spawn(move || act(&pace, sent_at))
}

fn moves(pace: &Responsive) -> (u64, u64) {
    (pace.metrics().times_up, pace.metrics().times_down)
}

#[test]
fn simultaneous_refusals_move_it_once() {
    loom::model(|| {
        let pace = pace(5, 1);
        let (one, another) = (pace.on_send(), pace.on_send());
        let other = spawn(&pace, one, refuse);
        refuse(&pace, another);
        other.join().unwrap();
        assert_eq!((pace.interval(), moves(&pace)), (ms(200), (2, 0)));
    });
}

#[test]
fn call_sent_after_a_move_has_seen_it() {
    loom::model(|| {
        let pace = pace(5, 1);
        let other = spawn(&pace, pace.on_send(), refuse);
        // Sent before or after the move: either way it is one move or two, and none is lost.
        let sent_at = pace.on_send();
        let seen = pace.interval();
        refuse(&pace, sent_at);
        other.join().unwrap();
        let ups = moves(&pace).0;
        assert_eq!(pace.interval(), ms(100 << (ups - 1)));
        assert!(ups == 2 || (ups == 3 && seen == ms(200)), "{ups} moves, {seen:?} seen");
    });
}

#[test]
fn no_success_is_lost_and_run_moves_once() {
    loom::model(|| {
        let pace = pace(3, 3);
        let admissions = [pace.on_send(), pace.on_send(), pace.on_send()];
        let other = spawn(&pace, admissions[0], accept);
        accept(&pace, admissions[1]);
        other.join().unwrap();
        assert_eq!((pace.interval(), moves(&pace)), (ms(400), (3, 0)));
        accept(&pace, admissions[2]);
        assert_eq!((pace.interval(), moves(&pace)), (ms(200), (3, 1)));
    });
}

#[test]
fn two_run_ending_successes_move_once() {
    loom::model(|| {
        let pace = pace(1, 3);
        let (one, another) = (pace.on_send(), pace.on_send());
        let other = spawn(&pace, one, accept);
        accept(&pace, another);
        other.join().unwrap();
        assert_eq!((pace.interval(), moves(&pace)), (ms(200), (3, 1)));
    });
}

#[test]
fn move_up_and_move_down_both_take_effect() {
    loom::model(|| {
        let pace = pace(1, 2);
        let (one, another) = (pace.on_send(), pace.on_send());
        let other = spawn(&pace, one, refuse);
        accept(&pace, another);
        let seen = pace.interval();
        assert!([ms(100), ms(200), ms(400)].contains(&seen), "{seen:?}");
        other.join().unwrap();
        assert_eq!((pace.interval(), moves(&pace)), (ms(200), (3, 1)));
    });
}

#[test]
fn moves_at_bottom_follow_each_other() {
    loom::model(|| {
        let pace = pace(1, 1);
        let (one, another) = (pace.on_send(), pace.on_send());
        let other = spawn(&pace, one, refuse);
        accept(&pace, another);
        other.join().unwrap();
        // Halved below the initial interval to 0 and up again, or doubled and halved.
        assert_eq!((pace.interval(), moves(&pace)), (ms(100), (2, 1)));
    });
}

#[test]
fn refusal_among_successes_restarts_run() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let pace = pace(2, 3);
        let admissions = [pace.on_send(), pace.on_send(), pace.on_send()];
        let refused = spawn(&pace, admissions[0], refuse);
        let accepted = spawn(&pace, admissions[1], accept);
        accept(&pace, admissions[2]);
        refused.join().unwrap();
        accepted.join().unwrap();
        // One move up to 400 ms; one move down if no refusal came between the successes.
        match moves(&pace) {
            (4, 0) => assert_eq!(pace.interval(), ms(800)),
            (4, 1) => assert_eq!(pace.interval(), ms(400)),
            other => panic!("{other:?}"),
        }
        // The words are at rest afterwards: both directions still work.
        refuse(&pace, pace.on_send());
        assert_eq!(moves(&pace).0, 5);
        accept(&pace, pace.on_send());
        accept(&pace, pace.on_send());
        assert!(moves(&pace).1 >= 1);
    });
}
