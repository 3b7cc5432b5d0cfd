//! A request to the store on behalf of one retry.
//!
//! The store's answer and the end of the retry may come in any order. The answer or the timeout decides whether the
//! retry is sent. After the answer and the end, `course` computes the tokens that the store gets back.

use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use reattempt_control::bounded_name;
use reattempt_core::{Permit, PermitIssuer};

use crate::courier::{Amounts, Asking, Message, Question};
use crate::course::{Course, End};
use crate::destination::{Destination, Memory};
use crate::member::Member;
use crate::report::credit;
use crate::rule::CAPACITY;
use crate::stats::FleetEvent;
use crate::store::BoxError;
use crate::sync::{Mutex, MutexGuard};

#[derive(Debug)]
struct Ask {
    member: Arc<Member>,
    destination: Arc<Destination>,
    earned: u64,
    cost: u64,
    /// The tokens that the bucket must have at least.
    // FB-2
    least: u64,
    memory: Memory,
    asked_at: Duration,
    waiting: Mutex<Waiting>,
}

/// The events so far, and the waker of the call that waits for the next one.
#[derive(Debug)]
struct Waiting {
    course: Course,
    waker: Option<Waker>,
}

/// Asks the store for the tokens that a retry costs, in millionths.
///
/// Returns a permit that waits for the answer, or one that needs none if the process decides alone. Returns `None` if
/// the last refusal has not expired, or if the store fails and the process may not decide alone.
pub(crate) fn ask(member: &Arc<Member>, destination: &str, cost: u64) -> Option<Permit> {
    let now = member.courier.now();
    let found = if member.courier.is_ready() { member.destination(destination) } else { None };
    let Some(found) = found else {
        member.note(&bounded_name(destination), &FleetEvent::Alone);
        return Some(Permit::free());
    };
    let memory = found.remember(now, member.random());
    if memory == Memory::Refused {
        member.note(&found.name, &FleetEvent::Remembered);
        return None;
    }
    if !member.may_send(now) {
        let may = member.may_send_alone(&found, now);
        member.note(&found.name, &without_store(may));
        return may.then(|| Permit::new(Arc::new(Alone { member: Arc::clone(member), destination: found }), 0));
    }
    member.note(&found.name, &FleetEvent::Asked);
    let ask = Arc::new(Ask {
        member: Arc::clone(member),
        earned: found.take_credit(),
        least: if found.has_succeeded() { 0 } else { CAPACITY },
        destination: found,
        cost,
        memory,
        asked_at: now,
        waiting: Mutex::new(Waiting { course: Course::new(cost), waker: None }),
    });
    let asking = Arc::clone(&ask) as Arc<dyn Asking>;
    member.courier.carry(Message::Question(Question(asking)));
    // This permit costs nothing, because the local permit that it is joined with has the cost.
    Some(Permit::new(ask, 0))
}

/// Returns the event of a retry that the store did not decide on.
fn without_store(may: bool) -> FleetEvent<'static> {
    if may { FleetEvent::Alone } else { FleetEvent::Withheld }
}

/// A retry that this process sends without the store.
#[derive(Debug)]
struct Alone {
    member: Arc<Member>,
    destination: Arc<Destination>,
}

impl PermitIssuer for Alone {
    fn give_back(&self, _: u32) {}

    fn on_retry_end(&self, _: u32, succeeded: bool) {
        if succeeded {
            self.destination.on_retry_success(self.member.courier.now());
        }
    }
}

impl Asking for Ask {
    fn key(&self) -> &str {
        &self.destination.key
    }

    fn amounts(&self) -> Amounts {
        Amounts { earned: self.earned, cost: self.cost, least: self.least }
    }

    fn patience(&self) -> Duration {
        self.member.patience
    }

    fn answer(&self, answer: Result<bool, BoxError>) {
        let round_trip = self.member.courier.now().saturating_sub(self.asked_at);
        let event = match answer {
            Ok(true) => {
                self.destination.forget_refusals();
                self.record_event(Course::on_grant);
                FleetEvent::Granted { round_trip }
            }
            Ok(false) => {
                let (now, random) = (self.member.courier.now(), self.member.random());
                self.destination.on_refusal(self.memory, now, random);
                FleetEvent::Refused { round_trip }
            }
            Err(_) => {
                self.member.store_is_late();
                self.destination.forget_refusals();
                without_store(self.may_send_alone())
            }
        };
        // The refusal is stored before the waiting call continues. That call continues before the observer is notified,
        // so that a panic of the observer does not notify it again.
        let confirmed = self.confirm(!matches!(event, FleetEvent::Refused { .. } | FleetEvent::Withheld));
        match &answer {
            Err(error) => self.member.note(&self.destination.name, &FleetEvent::Failed { error: &**error }),
            Ok(_) if confirmed => self.member.store_works(),
            Ok(_) => {}
        }
        if confirmed {
            self.member.note(&self.destination.name, &event);
        }
    }

    fn is_late(&self) {
        // A question that is over already was late before, or has its answer.
        if self.waiting().course.confirmed().is_some() {
            return;
        }
        self.member.store_is_late();
        self.destination.forget_refusals();
        let may = self.may_send_alone();
        if self.confirm(may) {
            self.member.note(&self.destination.name, &FleetEvent::Late);
            self.member.note(&self.destination.name, &without_store(may));
        }
    }

    fn is_lost(&self) {
        if self.confirm(true) {
            self.destination.forget_refusals();
            self.member.note(&self.destination.name, &FleetEvent::Alone);
        }
    }
}

impl Ask {
    fn may_send_alone(&self) -> bool {
        self.member.may_send_alone(&self.destination, self.member.courier.now())
    }

    /// Decides whether the retry may be sent, and wakes the waiting call. Returns `false` if that was already decided.
    fn confirm(&self, confirmed: bool) -> bool {
        let mut waiting = self.waiting();
        if !waiting.course.confirm(confirmed) {
            return false;
        }
        let waker = waiting.waker.take();
        drop(waiting);
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Records an event and credits the tokens that are due.
    fn record_event(&self, event: impl FnOnce(&mut Course) -> u64) {
        let due = event(&mut self.waiting().course);
        if due > 0 {
            credit(&self.member, &self.destination, due, true);
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PermitIssuer for Ask {
    fn give_back(&self, _: u32) {
        self.record_event(|course| course.on_end(End::Unsent));
    }

    fn on_retry_end(&self, _: u32, succeeded: bool) {
        let end = if succeeded { End::Succeeded } else { End::Failed };
        if succeeded {
            self.destination.on_retry_success(self.member.courier.now());
        }
        self.record_event(|course| course.on_end(end));
    }

    fn poll_confirmed(&self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut waiting = self.waiting();
        if let Some(confirmed) = waiting.course.confirmed() {
            return Poll::Ready(confirmed);
        }
        match &mut waiting.waker {
            Some(waker) => waker.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }
}
