//! One request to the store for tokens.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::user_code;
use tokio::time::{Instant, timeout};

use super::outage::LONGEST;
use super::portion::{PATIENCE, Portion};
use super::shared::Shared;
use super::stats::FleetRateEvent;
use crate::rate_rule::Taken;
use crate::store::BoxError;

/// A request to the store for tokens. If it is dropped without an answer, the store has failed.
pub(super) struct Fetch {
    shared: Arc<Shared>,
    portion: Arc<Portion>,
    wanted: u32,
    /// The time of the request on the guard's clock.
    asked_at: Duration,
    start: Instant,
    is_answered: bool,
}

impl Fetch {
    pub(super) fn new(shared: Arc<Shared>, portion: Arc<Portion>, wanted: u32, now: Duration) -> Self {
        Self { shared, portion, wanted, asked_at: now, start: Instant::now(), is_answered: false }
    }

    /// Asks, and awaits a late answer for a second. Its tokens count, because the store has taken them.
    // L-3
    pub(super) async fn send(mut self) {
        self.shared.tally.asked.fetch_add(1, Ordering::Relaxed);
        let answer = {
            let mut taking = self.shared.store.take(&self.portion.key, self.shared.rate, self.wanted);
            match timeout(PATIENCE, &mut taking).await {
                Ok(answer) => Some(answer),
                Err(_) => {
                    self.on_late();
                    timeout(LONGEST - PATIENCE, taking).await.ok()
                }
            }
        };
        self.is_answered = true;
        match answer {
            Some(Ok(taken)) => self.on_answer(taken),
            Some(Err(error)) => self.on_failure(Some(&error)),
            None => self.on_failure(None),
        }
    }

    fn now(&self) -> Duration {
        self.asked_at + self.start.elapsed()
    }

    fn on_late(&self) {
        self.shared.tally.late.fetch_add(1, Ordering::Relaxed);
        let mut supply = self.portion.supply();
        let woken = supply.queue.first_wakers(1);
        let is_alone = supply.is_alone(&self.shared.outage, self.now());
        drop(supply);
        woken.into_iter().for_each(Waker::wake);
        // A process that owes too many calls is not alone: it waits for the answer.
        if is_alone {
            self.report(&FleetRateEvent::Late);
        }
    }

    fn on_answer(&self, taken: Taken) {
        self.shared.tally.granted.fetch_add(taken.granted.min(self.wanted).into(), Ordering::Relaxed);
        self.shared.outage.on_answer();
        let event = if self.record_answer(Some(taken)) { FleetRateEvent::GrantsNobody } else { FleetRateEvent::Shared };
        self.report(&event);
    }

    fn on_failure(&self, error: Option<&BoxError>) {
        self.shared.tally.failed.fetch_add(1, Ordering::Relaxed);
        self.shared.outage.on_failure(self.asked_at, self.now());
        self.record_answer(None);
        self.report(&FleetRateEvent::Failed { error: error.map(|error| &**error) });
    }

    /// Records the end of the request. Returns `true` if the process is alone although the store has answered.
    fn record_answer(&self, answer: Option<Taken>) -> bool {
        let now = self.now();
        let random = self.shared.hasher.hash_one(now);
        let own_burst = self.shared.local.burst(&self.portion.name);
        let mut supply = self.portion.supply();
        let woken = supply.answer(answer, self.wanted, own_burst, now, random);
        let is_alone = supply.is_alone(&self.shared.outage, now);
        drop(supply);
        woken.into_iter().for_each(Waker::wake);
        is_alone
    }

    /// Notifies the observer if the process has begun or ceased to be alone.
    fn report(&self, event: &FleetRateEvent<'_>) {
        let Some(observer) = &self.shared.observer else { return };
        user_code::notify(|| {
            let is_alone = !matches!(event, FleetRateEvent::Shared);
            let was_alone = std::mem::replace(&mut self.portion.supply().is_reported, is_alone);
            if is_alone != was_alone {
                observer(&self.portion.name, event);
            }
        });
    }
}

impl Drop for Fetch {
    fn drop(&mut self) {
        if !self.is_answered {
            self.on_failure(None);
        }
    }
}
