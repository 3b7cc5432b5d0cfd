//! The events of a shared budget, its observers, and its counts.

use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use reattempt_core::Budget;
use reattempt_fleet::courier::Message;
use reattempt_fleet::{FleetBudget, FleetEvent};

use crate::support::{ByHand, Faulty, ask, confirmed, poll};

#[tokio::test(start_paused = true)]
async fn events_have_their_destination() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let budget = FleetBudget::new(Faulty::taking(Duration::from_millis(10))).on_event(move |destination, event| {
        log.lock().unwrap().push(format!("{destination}: {event:?}"));
    });
    assert!(confirmed(&ask(&budget, "a").unwrap()).await);
    assert_eq!(*seen.lock().unwrap(), ["a: Asked", "a: Granted { round_trip: 10ms }"]);
    assert_eq!(budget.stats().round_trip, Duration::from_millis(10));
}

/// Each answer moves the average round trip by an eighth of the difference.
#[test]
fn round_trip_is_an_average() {
    let hand = ByHand::default();
    let budget = hand.budget();
    for (takes, average) in [(16, 16_000), (80, 24_000), (8, 22_000), (0, 19_250)] {
        (0..5).for_each(|_| budget.local().on_success("a", 0));
        let permit = ask(&budget, "a").unwrap();
        hand.advance(Duration::from_millis(takes));
        let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
        question.answer(Ok(true));
        drop(permit.spend());
        assert_eq!(budget.stats().round_trip.as_micros(), average);
    }
}

/// An observer that panics at a failure of the store loses no retry, and is not notified again while it unwinds, which
/// would abort the process.
#[tokio::test(start_paused = true)]
async fn panic_of_observer_loses_no_retry() {
    let budget = FleetBudget::new(Faulty::down()).on_event(|_, event| {
        if matches!(event, FleetEvent::Failed { .. } | FleetEvent::Withheld) {
            std::panic::resume_unwind(Box::new("an observer's fault"));
        }
    });
    assert!(!confirmed(&ask(&budget, "a").unwrap()).await);
}

/// A value whose destructor asks for a retry, as one does that holds a call.
struct AsksInDrop(FleetBudget);

impl Drop for AsksInDrop {
    fn drop(&mut self) {
        drop(ask(&self.0, "a"));
    }
}

/// A panic while something else unwinds would abort the process, so the observer is not notified then. The event is
/// counted.
#[test]
fn observer_is_not_notified_while_unwinding() {
    use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
    let budget = ByHand::default().budget().on_event(|_, _| resume_unwind(Box::new("an observer's fault")));
    catch_unwind(AssertUnwindSafe(|| drop(ask(&budget, "a")))).unwrap_err();
    assert_eq!(budget.stats().asked, 1, "its panic reaches the caller, and poisons nothing");
    let dropped = AsksInDrop(budget.clone());
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _dropped = dropped;
        resume_unwind(Box::new("a service's fault"));
    }));
    unwound.unwrap_err();
    assert_eq!(budget.stats().asked, 2);
    // A question that is dropped meanwhile is lost, and its retry is sent.
    let hand = ByHand::default();
    let budget = hand.budget().on_event(|_, event| {
        if matches!(event, FleetEvent::Alone) {
            resume_unwind(Box::new("an observer's fault"));
        }
    });
    let permit = ask(&budget, "a").unwrap();
    let question = hand.take(0);
    let unwound = catch_unwind(AssertUnwindSafe(move || {
        let _question = question;
        resume_unwind(Box::new("a carrier's fault"));
    }));
    unwound.unwrap_err();
    assert_eq!((poll(&permit), budget.stats().alone), (Poll::Ready(true), 1));
}

/// A destination of any length has a name of at most 255 bytes in the table and in events.
#[test]
fn names_are_bounded_in_length() {
    let (names, hand) = (Arc::new(Mutex::new(Vec::new())), ByHand::default());
    let log = Arc::clone(&names);
    let budget = hand.budget().on_event(move |name, _| log.lock().unwrap().push(name.to_owned()));
    let permit = ask(&budget, &"a".repeat(1_000_000)).unwrap();
    let Some(Message::Question(question)) = hand.take(0) else { panic!("no question") };
    assert!(question.key().len() <= 200);
    question.answer(Ok(true));
    drop(permit);
    let names = names.lock().unwrap();
    assert_eq!(names.len(), 2);
    assert!(names.iter().all(|name| name.len() <= 255));
}
