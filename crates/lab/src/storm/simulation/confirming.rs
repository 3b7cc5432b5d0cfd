//! Retries that wait for the answer of the fleet's store.

use std::task::Poll;

use super::{Ended, Event, Kind, Simulation, Watch};
use crate::storm::fleet::{Owner, StoreEvent};
use crate::storm::tick::time;

impl<W: Watch> Simulation<'_, W> {
    /// Sends what the clients' budgets have for the store, on behalf of a call.
    pub(super) fn post(&mut self, owner: Owner) {
        let Some(fleet) = &mut self.fleet else { return };
        for (delay, slot, event) in fleet.send(owner) {
            let kind = Kind::Store(event);
            self.queue.after(delay, Event { slot, client: 0, call: 0, attempt: 0, kind });
        }
    }

    /// Handles an event of a message to the store.
    pub(super) fn store_event(&mut self, event: Event, of_store: StoreEvent) {
        let now = self.queue.now();
        let Some(fleet) = &mut self.fleet else { return };
        let (next, owner) = fleet.happens(now, event.slot, of_store);
        if let Some((delay, next)) = next {
            self.queue.after(delay, Event { kind: Kind::Store(next), ..event });
        }
        // A grant that is not needed is returned.
        self.post((0, 0, 0, 0));
        let Some((slot, client, call, attempt)) = owner else { return };
        let known = self.calls.get(slot as usize);
        if known.is_some_and(|it| (it.client, it.number, it.attempt) == (client, call, attempt)) {
            let attempt = attempt.saturating_sub(1);
            self.confirm(slot as usize, Event { slot, client, call, attempt, ..event });
        }
    }

    /// Goes on with a call whose retry is confirmed or refused.
    pub(super) fn confirm(&mut self, slot: usize, event: Event) {
        let call = &mut self.calls[slot];
        let Some(retrying) = call.retrying.as_mut().filter(|_| call.confirming.is_some()) else {
            return;
        };
        let Poll::Ready(confirmed) = retrying.poll_confirmed() else { return };
        let Some((mut ended, due)) = call.confirming.take().map(|held| *held) else { return };
        let wait = time(due.saturating_sub(self.queue.now()));
        ended.then = confirmed.map(|()| wait);
        if ended.then.is_err() {
            self.post((0, 0, 0, 0));
        }
        self.follow(slot, event, &ended);
    }

    /// Does what follows an attempt.
    pub(super) fn follow(&mut self, slot: usize, event: Event, ended: &Ended) {
        self.watch.ended(ended);
        match ended.then {
            Ok(after) => self.retry(slot, event, after),
            Err(_) => {
                self.calls[slot].attempt = 0;
                self.calls[slot].retrying = None;
                self.free.push(event.slot);
            }
        }
    }
}
