//! Models of turns: takers among each other, takers against moves, and the rule that moves the interval.

use core::time::Duration;
use std::sync::Mutex;

use reattempt_core::{Schedule, SentAt};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::{ms, secs};

use crate::race::outcomes;
use crate::{accept, moves, pace, refuse};

pub(crate) type Turn = Result<(), Duration>;

/// A pace of turns, and the notes of two calls that were sent before the race.
struct Scene {
    turns: Responsive,
    notes: [SentAt; 2],
}

/// Returns a pace after this many refusals. The last turn was at 1 s, unless the interval is 0.
pub(crate) fn turns(threshold: u32, refusals: u32) -> Responsive {
    let turns = pace(threshold, 0);
    turns.give_turns();
    for _ in 0..refusals {
        refuse(&turns, turns.on_send());
    }
    if refusals > 0 {
        turns.take_turn(secs(1), 0).unwrap_err();
    }
    turns
}

impl Scene {
    fn new(turns: Responsive) -> Self {
        let notes = [turns.on_send(), turns.on_send()];
        Self { turns, notes }
    }

    fn take(&self, now: Duration) -> Turn {
        self.turns.take_turn(now, 0)
    }

    fn due(&self) -> Duration {
        self.turns.turn_due(secs(1), 0)
    }

    fn refuse(&self) {
        refuse(&self.turns, self.notes[0]);
    }

    fn accept(&self) {
        accept(&self.turns, self.notes[0]);
    }

    fn interval_and_moves(&self) -> (Duration, (u64, u64)) {
        (self.turns.interval(), moves(&self.turns))
    }
}

/// Two callers ask on time. One takes the turn, and the next turn is one interval later.
#[test]
fn two_takers_never_share_a_turn() {
    let take = |scene: &Scene| scene.take(ms(1_102));
    let found = outcomes(|| Scene::new(turns(5, 1)), take, take, |scene, one, another| (one, another, scene.due()));
    let next = ms(1_200);
    assert_eq!(found, [(Ok(()), Err(next), next), (Err(next), Ok(()), next)]);
}

/// After a pause no turns are saved up: two callers that ask late find one turn.
#[test]
fn two_late_takers_never_share_a_turn() {
    let take = |scene: &Scene| scene.take(secs(9));
    let found = outcomes(|| Scene::new(turns(5, 1)), take, take, |scene, one, another| (one, another, scene.due()));
    let next = ms(9_098);
    assert_eq!(found, [(Ok(()), Err(next), next), (Err(next), Ok(()), next)]);
}

/// Two callers that ask one interval apart each take a turn. The first one gets none if it is slower by an interval.
#[test]
fn two_takers_are_an_interval_apart() {
    let found = outcomes(
        || Scene::new(turns(5, 1)),
        |scene| scene.take(ms(1_100)),
        |scene| scene.take(ms(1_200)),
        |scene, one, another| (one, another, scene.due()),
    );
    let slow = ms(1_298);
    assert_eq!(found, [(Ok(()), Ok(()), ms(1_300)), (Err(slow), Ok(()), slow)]);
}

/// The first two callers after a refusal begin the order of turns once, and wait for one turn.
#[test]
fn two_first_takers_wait_for_one_turn() {
    let begin = || {
        let turns = pace(5, 1);
        turns.give_turns();
        Scene::new(turns)
    };
    let found =
        outcomes(begin, |scene| scene.take(ms(1_000)), |scene| scene.take(ms(1_050)), |_, one, another| (one, another));
    let waits = |due| (Err(ms(due)), Err(ms(due)));
    assert_eq!(found, [waits(1_100), waits(1_150)]);
}

/// A turn is taken at the interval before the refusal or at the one after it. Either way the next turn is a longer
/// interval later.
#[test]
fn refusal_delays_every_turn_after_it() {
    let found = outcomes(
        || Scene::new(turns(5, 1)),
        |scene| scene.take(ms(1_100)),
        Scene::refuse,
        |scene, taken, ()| (taken, scene.due()),
    );
    assert_eq!(found, [(Ok(()), ms(1_300)), (Err(ms(1_200)), ms(1_200))]);
}

/// A turn is taken before a step down or after it. Either way the next turn is a shorter interval later.
#[test]
fn step_down_hastens_every_turn_after_it() {
    let found = outcomes(
        || Scene::new(turns(1, 2)),
        |scene| scene.take(ms(1_100)),
        Scene::accept,
        |scene, taken, ()| (taken, scene.due()),
    );
    assert_eq!(found, [(Ok(()), ms(1_200)), (Err(ms(1_200)), ms(1_100))]);
}

/// After an interval of 0 the order of turns begins anew. No caller sees the new interval with the time of an old turn.
#[test]
fn refusal_after_no_interval_begins_anew() {
    let begin = || {
        let turns = turns(1, 1);
        accept(&turns, turns.on_send());
        assert_eq!(turns.interval(), Duration::ZERO);
        Scene::new(turns)
    };
    let found =
        outcomes(begin, |scene| [scene.take(secs(5)), scene.take(secs(5))], Scene::refuse, |_, taken, ()| taken);
    let waits = Err(ms(5_100));
    assert_eq!(found, [[Ok(()), Ok(())], [Ok(()), waits], [waits, waits]]);
}

/// A refusal starts from the time between turns, either before or after the other caller's turn.
#[test]
fn refusal_starts_from_the_gap_of_a_turn() {
    let begin = || {
        let turns = turns(2, 1);
        accept(&turns, turns.on_send());
        Scene::new(turns)
    };
    let found = outcomes(
        begin,
        |scene| scene.take(ms(1_402)),
        Scene::refuse,
        |scene, taken, ()| (taken, scene.turns.interval(), scene.due()),
    );
    let started = |interval| (Ok(()), ms(interval), ms(1_400 + interval));
    assert_eq!(found, [started(200), started(800)]);
}

#[test]
fn simultaneous_refusals_move_turns_once() {
    let found = outcomes(
        || Scene::new(turns(5, 1)),
        Scene::refuse,
        |scene| refuse(&scene.turns, scene.notes[1]),
        |scene, (), ()| scene.interval_and_moves(),
    );
    assert_eq!(found, [(ms(200), (2, 0))]);
}

/// If two successes end a run, only one steps down. Before the end of a run, no success is lost.
#[test]
fn simultaneous_successes_step_down_once() {
    for threshold in [1, 2] {
        let found = outcomes(
            move || Scene::new(turns(threshold, 2)),
            Scene::accept,
            |scene| accept(&scene.turns, scene.notes[1]),
            |scene, (), ()| scene.interval_and_moves(),
        );
        assert_eq!(found, [(ms(100), (2, 1))], "{threshold}");
    }
}

/// A call that was sent before a step down is refused. The interval before the step was too short, whichever outcome
/// is first. An outcome that comes during the move of the other is dropped.
#[test]
fn refusal_against_step_down_moves_up_once() {
    let found = outcomes(
        || Scene::new(turns(1, 2)),
        Scene::refuse,
        |scene| accept(&scene.turns, scene.notes[1]),
        |scene, (), ()| scene.interval_and_moves(),
    );
    assert_eq!(found, [(ms(100), (2, 1)), (ms(400), (3, 0)), (ms(400), (3, 1))]);
}

/// If two calls sent after a step down are refused, one undoes the step, and the other is ignored.
#[test]
fn two_refused_probes_undo_the_step_once() {
    let begin = || {
        let turns = turns(1, 2);
        accept(&turns, turns.on_send());
        Scene::new(turns)
    };
    let found = outcomes(
        begin,
        Scene::refuse,
        |scene| refuse(&scene.turns, scene.notes[1]),
        |scene, (), ()| scene.interval_and_moves(),
    );
    assert_eq!(found, [(ms(200), (3, 1))]);
}

/// A success recorded at the same time as a refusal is either ignored or the first in the next run. With a run length
/// of two, one more success then ends the run.
#[test]
fn success_beside_refusal_may_count() {
    let begin = || {
        let turns = turns(2, 2);
        accept(&turns, turns.on_send());
        accept(&turns, turns.on_send());
        Scene::new(turns)
    };
    let found = outcomes(
        begin,
        Scene::refuse,
        |scene| accept(&scene.turns, scene.notes[1]),
        |scene, (), ()| {
            accept(&scene.turns, scene.turns.on_send());
            scene.interval_and_moves()
        },
    );
    assert_eq!(found, [(ms(100), (3, 2)), (ms(200), (3, 1))]);
}

/// A turn is returned, unless another caller has taken the next one, which stays one interval later.
#[test]
fn turn_before_another_is_not_given_back() {
    let start = || {
        let scene = Scene::new(turns(5, 1));
        let turn = Mutex::new(scene.turns.reserve_turn(ms(1_100), 0).ok());
        (scene, turn)
    };
    let found = outcomes(
        start,
        |(scene, turn)| scene.turns.give_back(turn.lock().unwrap().take().unwrap()),
        |(scene, _)| scene.take(ms(1_200)),
        |(scene, _), given, taken| (given, taken, scene.due()),
    );
    // Given back first, the turn of 1,100 ms is there again: it is taken 98 ms late.
    assert_eq!(found, [(false, Ok(()), ms(1_300)), (true, Ok(()), ms(1_298))]);
}
