//! A faulty store, a message carrier that the test controls, and short helpers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use reattempt_core::{Budget, Failure, FailureKind, Permit};
use reattempt_fleet::courier::{Amounts, Courier, Message, Question};
use reattempt_fleet::{BudgetStore, FleetBudget, MemoryStore, Settling};
use tokio::time::{sleep, timeout};

pub(crate) const SERVER: Failure = Failure::new(FailureKind::Server);

/// A store that answers late, or fails while it is down. It records what was earned and requested.
#[derive(Clone)]
pub(crate) struct Faulty {
    pub(crate) memory: MemoryStore,
    pub(crate) takes: Duration,
    pub(crate) down: Arc<AtomicBool>,
    messages: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl Faulty {
    pub(crate) fn taking(takes: Duration) -> Self {
        Self { memory: MemoryStore::new(), takes, down: Arc::default(), messages: Arc::default() }
    }

    pub(crate) fn down() -> Self {
        let store = Self::taking(Duration::ZERO);
        store.down.store(true, Ordering::Relaxed);
        store
    }

    pub(crate) fn messages(&self) -> Vec<(u64, u64)> {
        self.messages.lock().unwrap().clone()
    }
}

impl BudgetStore for Faulty {
    fn settle<'a>(&'a self, key: &'a str, earned: u64, cost: u64, least: u64) -> Settling<'a> {
        self.messages.lock().unwrap().push((earned, cost));
        Box::pin(async move {
            if self.down.load(Ordering::Relaxed) {
                return Err("the store is down".into());
            }
            let answer = self.memory.settle(key, earned, cost, least).await;
            sleep(self.takes).await;
            answer
        })
    }
}

/// A carrier whose messages the test delivers by hand, at times that the test sets.
#[derive(Clone, Default)]
pub(crate) struct ByHand(Arc<Mutex<Queue>>);

#[derive(Default)]
struct Queue {
    now: Duration,
    messages: VecDeque<Message>,
}

impl ByHand {
    /// Returns the budget of a process that has had a success at `a`.
    pub(crate) fn budget(&self) -> FleetBudget {
        experienced(FleetBudget::carried_by(self.clone()))
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.0.lock().unwrap().now += by;
    }

    pub(crate) fn time(&self) -> Duration {
        self.0.lock().unwrap().now
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().messages.len()
    }

    /// Takes a message from any position.
    pub(crate) fn take(&self, at: usize) -> Option<Message> {
        self.0.lock().unwrap().messages.remove(at)
    }
}

impl Courier for ByHand {
    fn now(&self) -> Duration {
        self.time()
    }

    fn is_ready(&self) -> bool {
        true
    }

    fn seed(&self) -> u64 {
        1
    }

    fn carry(&self, message: Message) {
        self.0.lock().unwrap().messages.push_back(message);
    }
}

/// Returns the budget of a process that has had a success at `a`. Another would need a full bucket.
pub(crate) fn experienced(budget: FleetBudget) -> FleetBudget {
    budget.on_success("a", 0);
    budget
}

/// Returns the tokens earned and the cost of a question.
pub(crate) fn amounts(question: &Question) -> (u64, u64) {
    let Amounts { earned, cost, .. } = question.amounts();
    (earned, cost)
}

/// Requests a retry after a server failure.
pub(crate) fn ask(budget: &FleetBudget, destination: &str) -> Option<Permit> {
    budget.acquire_after_failure(destination, &SERVER.into(), Duration::ZERO)
}

pub(crate) fn poll(permit: &Permit) -> Poll<bool> {
    permit.poll_confirmed(&mut Context::from_waker(Waker::noop()))
}

/// Waits for the store's answer, as a driver does. The clock is paused, so a wait without an answer fails at once.
pub(crate) async fn confirmed(permit: &Permit) -> bool {
    timeout(Duration::from_secs(60), std::future::poll_fn(|cx| permit.poll_confirmed(cx))).await.unwrap()
}
