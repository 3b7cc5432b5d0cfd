//! The steps of a paced call: it waits for its turn, it is sent, and its outcome is recorded.

use std::error::Error;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use reattempt_core::{Schedule, SentAt, Verdict};
use reattempt_schedule_responsive::Responsive;
use tokio::time::Instant;

use super::queue::{Place, Queue, Step};
use crate::call::clock;
use crate::call::deadline::Deadline;
use crate::call::random::{CallRandom, Seed};
use crate::protocol::{ClassifyOutcome, SavedClone};

/// The settings of a layer and of the services that it makes.
#[derive(Debug, Clone)]
pub(super) struct Settings<K> {
    pub(super) pace: Responsive,
    pub(super) protocol: K,
    /// `true` if outcomes are reported to the pace.
    pub(super) records: bool,
    pub(super) seed: Option<Seed>,
    pub(super) queue: Arc<Queue>,
}

/// A call that was sent: the pace's note of it, and the stream of its random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    sent_at: SentAt,
    stream: Option<u64>,
}

/// The steps of a call.
impl<K> Settings<K> {
    /// Takes a turn for a call that need not wait, if there is one.
    #[inline]
    pub(super) fn is_turn(&self) -> bool {
        self.pace.interval().is_zero()
            || self.queue.try_turn(&self.pace, clock::since_epoch(Instant::now()))
    }

    /// Asks for the turn of a call that waits, and enters it into the queue at first.
    ///
    /// Without a runtime nothing can wait, so the call is admitted.
    pub(super) fn turn(
        &self,
        place: &mut Option<Place>,
        deadline: Option<Deadline>,
        refuses: bool,
        now: Instant,
        waker: &Waker,
    ) -> Step {
        if !clock::has_timer() {
            return Step::Admitted(Duration::ZERO);
        }
        let now = clock::since_epoch(now);
        if place.is_none() {
            let deadline = deadline.map(|deadline| clock::since_epoch(deadline.instant()));
            match self.queue.enter(&self.pace, now, deadline, refuses) {
                Ok(entered) => *place = Some(entered),
                Err(refused) => return Step::Refused(refused),
            }
        }
        match place {
            Some(place) => place.poll(&self.pace, now, waker),
            None => Step::Admitted(Duration::ZERO),
        }
    }

    /// Records that a call is sent.
    #[inline]
    pub(super) fn on_send(&self) -> Sent {
        if !self.records {
            return Sent::default();
        }
        let stream = self.seed.as_ref().map(Seed::next_stream);
        Sent { sent_at: self.pace.on_send(), stream }
    }

    /// Records the outcome of a call.
    #[inline]
    pub(super) fn record<T>(&self, sent: Sent, outcome: Result<&T, &(dyn Error + 'static)>)
    where
        K: ClassifyOutcome<T>,
    {
        if !self.records {
            return;
        }
        if self.protocol.is_refused(outcome) {
            return;
        }
        let verdict =
            self.protocol.classify_outcome(outcome, None, None::<&SavedClone<()>>).verdict;
        let mut random = CallRandom::unseeded(sent.stream);
        if verdict == Verdict::Success {
            let interval = self.pace.interval();
            self.pace.on_success(sent.sent_at, &mut random);
            if !interval.is_zero() && self.pace.interval() < interval {
                self.queue.wake_first();
            }
        } else if let Some(failure) = verdict.failure() {
            self.pace.on_failure(sent.sent_at, failure, &mut random);
        }
    }
}
