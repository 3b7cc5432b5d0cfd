//! The models. Each thread is one of the places where an event of a retry happens.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use loom::sync::Notify;
use loom::thread;
use reattempt_core::Permit;

use crate::ask::ask;
use crate::courier::{Courier, Message, Question, Report};
use crate::member::Member;
use crate::report::credit;
use crate::rule::TOKEN;

/// Stores messages for the model. It is not part of what is checked, so its locks are std's.
#[derive(Default)]
struct Kept {
    messages: Mutex<VecDeque<Message>>,
    now: Mutex<Duration>,
}

impl Courier for Arc<Kept> {
    fn now(&self) -> Duration {
        *self.now.lock().unwrap()
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn seed(&self) -> u64 {
        1
    }

    fn carry(&self, message: Message) {
        self.messages.lock().unwrap().push_back(message);
    }
}

struct Scene {
    member: Arc<Member>,
    kept: Arc<Kept>,
}

impl Scene {
    fn new() -> Self {
        let kept = Arc::new(Kept::default());
        let courier = Arc::new(Arc::clone(&kept));
        let member = Member::new("model".into(), Duration::from_millis(50), None, courier);
        Self { member: Arc::new(member), kept }
    }

    /// Requests a retry. Returns its permit and the question.
    fn ask(&self) -> (Permit, Question) {
        let permit = ask(&self.member, "a", TOKEN).unwrap();
        match self.kept.messages.lock().unwrap().pop_front() {
            Some(Message::Question(question)) => (permit, question),
            other => panic!("{other:?}"),
        }
    }

    fn report(&self) -> Option<Report> {
        let message = self.kept.messages.lock().unwrap().pop_front()?;
        let Message::Report(report) = message else { panic!("{message:?}") };
        Some(report)
    }

    /// Returns the tokens in pending reports. None may be left behind.
    fn reported(&self) -> u64 {
        // No report is sent for a second to a store that was late.
        *self.kept.now.lock().unwrap() += Duration::from_secs(2);
        let mut sum = 0;
        while let Some(report) = self.report() {
            sum += report.take().unwrap_or(0);
        }
        let destination = self.member.destination("a").unwrap();
        assert!(!destination.has_credit(), "tokens without a report");
        sum
    }
}

/// A grant returns its cost if the retry was dropped, whichever comes first.
// F-6
#[test]
fn answer_and_drop_return_the_cost_once() {
    loom::model(|| {
        let scene = Scene::new();
        let (permit, question) = scene.ask();
        let answers = thread::spawn(move || question.answer(Ok(true)));
        drop(permit);
        answers.join().unwrap();
        assert_eq!(scene.reported(), TOKEN);
    });
}

/// A late grant and the success of its retry return three tokens, whichever comes first.
// F-6
#[test]
fn late_answer_and_success_return_three() {
    loom::model(|| {
        let scene = Scene::new();
        let (permit, question) = scene.ask();
        question.is_late();
        let answers = thread::spawn(move || question.answer(Ok(true)));
        permit.spend().succeed();
        answers.join().unwrap();
        assert_eq!(scene.reported(), 3 * TOKEN);
    });
}

/// Nothing is returned for a retry that the store has refused, or whose answer is lost.
// F-6
#[test]
fn refusal_and_drop_return_nothing() {
    for answer in [Some(false), None] {
        loom::model(move || {
            let scene = Scene::new();
            let (permit, question) = scene.ask();
            let answers = thread::spawn(move || match answer {
                Some(answer) => question.answer(Ok(answer)),
                None => drop(question),
            });
            drop(permit);
            answers.join().unwrap();
            assert_eq!(scene.reported(), 0);
        });
    }
}

/// A driver that sleeps until it is woken.
struct Driver(Notify);

impl Wake for Driver {
    fn wake(self: Arc<Self>) {
        self.0.notify();
    }
}

/// The answer wakes the retry's driver, and the answer does not change. The checker sees a lost wakeup as a deadlock.
#[test]
fn answer_wakes_and_stays() {
    for (answer, is_late) in [(true, false), (false, false), (true, true)] {
        loom::model(move || {
            let scene = Scene::new();
            let (permit, question) = scene.ask();
            let store = thread::spawn(move || {
                if is_late {
                    question.is_late();
                }
                question.answer(Ok(answer));
            });
            let driver = Arc::new(Driver(Notify::new()));
            let waker = Waker::from(Arc::clone(&driver));
            let cx = &mut Context::from_waker(&waker);
            let confirmed = loop {
                match permit.poll_confirmed(cx) {
                    Poll::Ready(confirmed) => break confirmed,
                    Poll::Pending => driver.0.wait(),
                }
            };
            // A late answer does not change the refusal (FB-1).
            assert_eq!(confirmed, answer && !is_late);
            store.join().unwrap();
            assert_eq!(permit.poll_confirmed(cx), Poll::Ready(confirmed));
            drop(permit);
        });
    }
}

/// Tokens that are credited while a report leaves go with it or with one more report. None is left behind by a report
/// that has left, not even if the report finds that a question has taken its tokens.
#[test]
fn credit_is_never_without_a_report() {
    for is_taken in [false, true] {
        loom::model(move || {
            let scene = Scene::new();
            let destination = scene.member.destination("a").unwrap();
            credit(&scene.member, &destination, TOKEN, true);
            let report = scene.report().unwrap();
            let taken = if is_taken { destination.take_credit() } else { 0 };
            let leaves = thread::spawn(move || report.take().unwrap_or(0));
            credit(&scene.member, &destination, 3 * TOKEN, true);
            let sent = leaves.join().unwrap();
            assert_eq!(taken + sent + scene.reported(), 4 * TOKEN);
        });
    }
}

/// Tokens go with a question or with a report, not with both.
#[test]
fn credit_is_sent_once() {
    loom::model(|| {
        let scene = Scene::new();
        let destination = scene.member.destination("a").unwrap();
        credit(&scene.member, &destination, 3 * TOKEN, true);
        let report = scene.report().unwrap();
        let leaves = thread::spawn(move || report.take().unwrap_or(0));
        let (permit, question) = scene.ask();
        let earned = question.amounts().earned;
        assert_eq!(leaves.join().unwrap() + earned, 3 * TOKEN);
        drop((permit, question));
    });
}

/// One of several concurrent retries asks as soon as the memory of a refusal is over.
// F-8
#[test]
fn memory_that_is_over_lets_one_retry_ask() {
    use crate::destination::{Destination, Memory};
    let second = Duration::from_secs(1);
    loom::model(move || {
        let destination = Arc::new(Destination::new("a", "k".into(), true));
        destination.on_refusal(Memory::Clear, Duration::ZERO, 0);
        let other = Arc::clone(&destination);
        let asks = thread::spawn(move || other.remember(second, 0));
        let own = destination.remember(second, 0);
        let both = [own, asks.join().unwrap()];
        assert!(both == [Memory::Probe, Memory::Refused] || both == [Memory::Refused, Memory::Probe], "{both:?}");
    });
}

/// If a store failed a second ago, one of several concurrent retries asks.
// F-8
#[test]
fn failing_store_has_one_probe() {
    loom::model(|| {
        let scene = Scene::new();
        scene.member.store_is_late();
        let (member, second) = (Arc::clone(&scene.member), Duration::from_secs(1));
        let asks = thread::spawn(move || member.may_send(second));
        let own = scene.member.may_send(second);
        assert_ne!(own, asks.join().unwrap());
    });
}
