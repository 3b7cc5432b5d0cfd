//! The queue of `PaceLayer` under the model checker: order, bound, places that are given back, and wakeups.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::time::Duration;

use reattempt_control::Patience;
use reattempt_core::Schedule;
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::ms;

use crate::call::pace_refused::PaceRefusal;
use crate::queue::{Blocked, Place, Queue, Step};
use crate::race::outcomes;
use crate::refuse;
use crate::turns::{Turn, turns};

/// The time at which calls enter. The first turn is due 100 ms later.
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

/// A queue with the places of calls that wait.
struct Scene {
    queue: Arc<Queue>,
    pace: Responsive,
    places: Vec<Mutex<Option<Place>>>,
    blocked: Mutex<Option<Blocked>>,
    woken: Arc<Woken>,
}

impl Scene {
    fn new(waiting: usize, calls: usize) -> Self {
        let patience = Patience { calls: waiting, time: Duration::from_secs(30) };
        let (queue, pace) = (Arc::new(Queue::new(patience)), turns(5, 1));
        let enter = |_| Mutex::new(queue.enter(&pace, NOW, None, true).ok());
        let places = (0..calls).map(enter).collect();
        Self { queue, pace, places, blocked: Mutex::default(), woken: Arc::default() }
    }

    fn enter(&self) -> Result<Place, PaceRefusal> {
        self.queue.enter(&self.pace, NOW, None, true).map_err(|refused| refused.reason)
    }

    fn take(&self, call: usize) -> Option<Place> {
        self.places[call].lock().unwrap().take()
    }

    fn leave(&self, call: usize) {
        drop(self.take(call));
    }

    /// Polls a call, which keeps its place.
    fn poll(&self, call: usize, now: Duration) -> Turn {
        let place = self.take(call).unwrap();
        let turn = self.poll_place(&place, now);
        *self.places[call].lock().unwrap() = Some(place);
        turn
    }

    fn poll_place(&self, place: &Place, now: Duration) -> Turn {
        match place.poll(&self.pace, now, &Waker::from(Arc::clone(&self.woken))) {
            Step::Admitted(_) => Ok(()),
            Step::Waiting(due) => Err(due),
            Step::Refused(refused) => panic!("{refused}"),
        }
    }

    fn has_room(&self) -> bool {
        let mut blocked = self.blocked.lock().unwrap().take();
        let waker = Waker::from(Arc::clone(&self.woken));
        let room = self.queue.has_room(&self.pace, NOW, &mut blocked, &waker);
        *self.blocked.lock().unwrap() = blocked;
        room
    }

    fn is_woken(&self) -> bool {
        self.woken.0.load(Ordering::SeqCst)
    }
}

#[test]
fn two_callers_never_pass_the_bound() {
    let found = outcomes(
        || Scene::new(1, 0),
        Scene::enter,
        Scene::enter,
        |_, one, another| (one.is_ok(), another.is_ok()),
    );
    assert_eq!(found, [(false, true), (true, false)]);
}

/// The second turn is due one interval after the first.
#[test]
fn two_callers_enter_one_behind_the_other() {
    let found = outcomes(
        || Scene::new(9, 0),
        |scene| scene.enter().unwrap(),
        |scene| scene.enter().unwrap(),
        |scene, one, another| (scene.poll_place(&one, NOW), scene.poll_place(&another, NOW)),
    );
    assert_eq!(found, [(Err(FIRST), Err(SECOND)), (Err(SECOND), Err(FIRST))]);
}

/// The call behind a dropped one finds the turn of that one, or is woken to ask again.
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

/// Of two calls that leave at once, neither takes another place with it, and none is left behind.
#[test]
fn two_dropped_places_leave_the_third() {
    let found = outcomes(
        || Scene::new(9, 3),
        |scene| scene.leave(0),
        |scene| scene.leave(1),
        |scene, (), ()| {
            let third = scene.poll(2, NOW);
            scene.leave(2);
            (third, scene.poll_place(&scene.enter().unwrap(), NOW))
        },
    );
    assert_eq!(found, [(Err(FIRST), Err(FIRST))]);
}

/// A new call neither overtakes one that waits, nor takes the turn that it has taken.
#[test]
fn new_call_takes_no_waiting_calls_turn() {
    let found = outcomes(
        || Scene::new(9, 1),
        |scene| scene.queue.try_turn(&scene.pace, FIRST),
        |scene| scene.poll(0, FIRST),
        |_, taken, turn| (taken, turn),
    );
    assert_eq!(found, [(false, Ok(()))]);
}

/// A new call finds the turn of a call that leaves, or it finds that call in the queue.
#[test]
fn new_call_takes_a_dropped_calls_turn() {
    let found = outcomes(
        || Scene::new(9, 1),
        |scene| scene.queue.try_turn(&scene.pace, FIRST),
        |scene| scene.leave(0),
        |scene, taken, ()| (taken, scene.queue.try_turn(&scene.pace, FIRST)),
    );
    assert_eq!(found, [(false, true), (true, false)]);
}

/// A handle that finds the queue full is woken when there is room.
#[test]
fn blocked_handle_is_woken_when_call_leaves() {
    let found = outcomes(
        || Scene::new(1, 1),
        |scene| scene.leave(0),
        Scene::has_room,
        |scene, (), room| (room, scene.is_woken(), scene.has_room()),
    );
    assert_eq!(found, [(false, true, true), (true, false, true)]);
}

/// A call that waits is admitted at the interval before a refusal, or asks again at the time after it.
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
