//! The report of earned tokens. It is sent only if no request to the store includes these tokens first.

use std::sync::Arc;
use std::time::Duration;

use crate::courier::{Message, Report, Reporting};
use crate::destination::{Destination, between};
use crate::member::Member;
use crate::stats::FleetEvent;
use crate::store::BoxError;
use crate::sync::{AtomicBool, Ordering};

/// The delay before reporting tokens that a retry earned or returned.
const SOON: Duration = Duration::from_millis(10);

/// The range of the delay before reporting successes.
const LATER: (Duration, Duration) = (Duration::from_millis(500), Duration::from_millis(1500));

#[derive(Debug)]
struct Credit {
    member: Arc<Member>,
    destination: Arc<Destination>,
    is_soon: bool,
    delay: Duration,
    is_taken: AtomicBool,
}

/// Adds tokens, which are sent with the next request or in a report, whichever comes first.
pub(crate) fn credit(member: &Arc<Member>, destination: &Arc<Destination>, earned: u64, is_soon: bool) {
    destination.add_credit(earned);
    let is_scheduled = destination.is_scheduled(is_soon);
    if member.courier.is_ready() && !is_scheduled.swap(true, Ordering::AcqRel) {
        let delay = if is_soon { SOON } else { between(LATER.0, LATER.1, member.random()) };
        let (member, destination) = (Arc::clone(member), Arc::clone(destination));
        let courier = Arc::clone(&member.courier);
        let credit = Credit { member, destination, is_soon, delay, is_taken: AtomicBool::new(false) };
        courier.carry(Message::Report(Report(Box::new(credit))));
    }
}

/// Adds the tokens for a success of `destination`.
pub(crate) fn on_success(member: &Arc<Member>, destination: &str, earned: u64) {
    if let Some(destination) = member.destination(destination) {
        destination.on_success();
        credit(member, &destination, earned, false);
    }
}

impl Reporting for Credit {
    fn key(&self) -> &str {
        &self.destination.key
    }

    fn delay(&self) -> Duration {
        self.delay
    }

    fn take(&self) -> Option<u64> {
        self.is_taken.store(true, Ordering::Relaxed);
        // A swap and not a store: a thread that found the flag set had already added its credit, which the swap makes
        // visible to the reads below.
        self.destination.is_scheduled(self.is_soon).swap(false, Ordering::AcqRel);
        let now = self.member.courier.now();
        let may_send = self.destination.has_credit() && self.member.may_send(now);
        let earned = if may_send { self.destination.take_credit() } else { 0 };
        (earned > 0).then_some(earned)
    }

    fn answer(&self, answer: Result<bool, BoxError>) {
        match answer {
            Ok(_) => self.member.store_works(),
            Err(error) => {
                self.member.store_is_late();
                self.member.note(&self.destination.name, &FleetEvent::Failed { error: &*error });
            }
        }
    }
}

/// Dropping a report, for example with its runtime, allows the next one to be sent.
impl Drop for Credit {
    fn drop(&mut self) {
        if !self.is_taken.load(Ordering::Relaxed) {
            self.destination.is_scheduled(self.is_soon).store(false, Ordering::Release);
        }
    }
}
