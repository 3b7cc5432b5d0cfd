//! Models of the queue of the guard `Pace`: order, bound, returned places, and wakeups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use reattempt_control::{Patience, WaiterId as InLine};
use reattempt_core::Schedule;
use reattempt_core::guard::{Admit, Arrival, Reason};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::ms;

use crate::queue::{Admission, Queue, Step};
use crate::race::outcomes;
use crate::refuse;
use crate::turns::{Turn, turns};

/// The time at which calls enter. The first turn comes 100 ms later.
const NOW: Duration = Duration::from_secs(1);
const FIRST: Duration = Duration::from_millis(1_100);
const SECOND: Duration = Duration::from_millis(1_200);

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A queue with waiting calls.
struct Scene {
    queue: Queue,
    pace: Responsive,
    waiting: Vec<Mutex<Option<InLine>>>,
    woken: Arc<Woken>,
}

fn arrival(now: Duration) -> Arrival<'static> {
    Arrival::new("", now)
}

impl Scene {
    fn new(room: usize, calls: usize) -> Self {
        let patience = Patience { calls: room, time: Duration::from_secs(30) };
        let (queue, pace) = (Queue::new(patience), turns(5, 1));
        let mut scene = Self { queue, pace, waiting: Vec::new(), woken: Arc::default() };
        scene.waiting = (0..calls).map(|_| Mutex::new(scene.enter().ok())).collect();
        scene
    }

    fn enter(&self) -> Result<InLine, Reason> {
        match self.queue.admit(&self.pace, &arrival(NOW)) {
            Admit::Waiting(Admission::Queued(turn)) => Ok(turn),
            Admit::Refused(refused) => Err(refused.reason()),
            admitted => panic!("{admitted:?}"),
        }
    }

    /// Returns `true` if a new call that may not wait is admitted.
    fn try_turn(&self) -> bool {
        let admitted = self.queue.admit(&self.pace, &arrival(FIRST).impatient());
        matches!(admitted, Admit::Admitted(Admission::Reserved(_)))
    }

    fn leave(&self, call: usize) {
        if let Some(turn) = self.waiting[call].lock().unwrap().take() {
            self.queue.leave(turn);
        }
    }

    fn poll(&self, call: usize, now: Duration) -> Turn {
        let turn = self.waiting[call].lock().unwrap().unwrap();
        self.poll_turn(turn, now)
    }

    fn poll_turn(&self, turn: InLine, now: Duration) -> Turn {
        let waker = Waker::from(Arc::clone(&self.woken));
        match self.queue.resume(&self.pace, turn, &arrival(now), &waker) {
            Step::Reserved(_) => Ok(()),
            Step::Waiting(due) => Err(due),
            Step::Refused(refused) => panic!("{refused}"),
        }
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }
}

#[test]
fn two_callers_never_pass_the_bound() {
    let found =
        outcomes(|| Scene::new(1, 0), Scene::enter, Scene::enter, |_, one, another| (one.is_ok(), another.is_ok()));
    assert_eq!(found, [(false, true), (true, false)]);
}

/// The second turn comes one interval after the first.
#[test]
fn two_callers_enter_one_behind_the_other() {
    let found = outcomes(
        || Scene::new(9, 0),
        |scene| scene.enter().unwrap(),
        |scene| scene.enter().unwrap(),
        |scene, one, another| (scene.poll_turn(one, NOW), scene.poll_turn(another, NOW)),
    );
    assert_eq!(found, [(Err(FIRST), Err(SECOND)), (Err(SECOND), Err(FIRST))]);
}

/// The call behind a dropped one either finds the dropped call's turn, or is woken to check again.
#[test]
fn dropped_place_passes_its_turn_on() {
    let found = outcomes(
        || Scene::new(9, 2),
        |scene| scene.leave(0),
        |scene| scene.poll(1, FIRST),
        |scene, (), turn| (turn, scene.is_woken()),
    );
    assert_eq!(found, [(Ok(()), false), (Err(SECOND), true)]);
}

/// If two calls leave at once, neither removes another one's place, and none is left behind.
#[test]
fn two_dropped_places_leave_the_third() {
    let found = outcomes(
        || Scene::new(9, 3),
        |scene| scene.leave(0),
        |scene| scene.leave(1),
        |scene, (), ()| {
            let third = scene.poll(2, NOW);
            scene.leave(2);
            (third, scene.poll_turn(scene.enter().unwrap(), NOW))
        },
    );
    assert_eq!(found, [(Err(FIRST), Err(FIRST))]);
}

/// A new call neither overtakes a waiting call nor takes its turn.
#[test]
fn new_call_takes_no_waiting_calls_turn() {
    let found =
        outcomes(|| Scene::new(9, 1), Scene::try_turn, |scene| scene.poll(0, FIRST), |_, taken, turn| (taken, turn));
    assert_eq!(found, [(false, Ok(()))]);
}

/// A new call finds either the turn of a leaving call, or that call in the queue.
#[test]
fn new_call_takes_a_dropped_calls_turn() {
    let found = outcomes(
        || Scene::new(9, 1),
        Scene::try_turn,
        |scene| scene.leave(0),
        |scene, taken, ()| (taken, scene.try_turn()),
    );
    assert_eq!(found, [(false, true), (true, false)]);
}

/// A returned turn goes to the waiting call, which finds it or is woken to check again.
#[test]
fn reserved_turn_given_back_passes_on() {
    let start = || {
        let mut scene = Scene::new(9, 0);
        let turn = Mutex::new(scene.pace.reserve_turn(FIRST, 0).ok());
        scene.waiting.push(Mutex::new(scene.enter().ok()));
        (scene, turn)
    };
    let found = outcomes(
        start,
        |(scene, turn)| {
            let turn = turn.lock().unwrap().take().unwrap();
            assert!(scene.pace.give_back(turn), "no other turn was taken");
            scene.queue.wake_first();
        },
        |(scene, _)| scene.poll(0, FIRST),
        |(scene, _), (), turn| (turn, scene.is_woken()),
    );
    assert_eq!(found, [(Ok(()), false), (Err(SECOND), true)]);
}

/// A waiting call is admitted at the interval before a refusal, or checks again at the later time.
#[test]
fn waiting_call_sees_refusal_or_is_first() {
    let found = outcomes(
        || Scene::new(9, 2),
        |scene| refuse(&scene.pace, scene.pace.on_send()),
        |scene| scene.poll(0, FIRST),
        |scene, (), turn| (turn, scene.poll(1, FIRST)),
    );
    assert_eq!(found, [(Ok(()), Err(ms(1_300))), (Err(ms(1_200)), Err(ms(1_400)))]);
}
