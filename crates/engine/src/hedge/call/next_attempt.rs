//! The next attempt, which is sent when it is due. If no attempt is possible, the call may end.

use std::ops::ControlFlow;
use std::task::{Context, Poll, ready};

use reattempt_core::{HedgeEvent, StopReason};

use super::{HedgeDriver, HedgedOutcome, Hedging, NotSent, Over, OverOf};
use crate::call::clock::Instant;
use crate::error_mode::ErrorMode;
use crate::protocol::CallTypes;

impl<T: CallTypes> HedgeDriver<T> {
    /// Sends the next attempt if one is due. Returns the end of the call if no attempt is possible and none is in
    /// flight.
    pub(in crate::hedge) fn poll_hedge(&mut self, cx: &mut Context<'_>) -> ControlFlow<OverOf<T>, Hedging> {
        self.announce();
        let NotSent(reason, error) = match self.poll_due(cx) {
            Ok(Hedging::Sent) => {
                // The attempt is in flight, so the call continues.
                let _ = self.decide(HedgeEvent::Sent);
                return ControlFlow::Continue(Hedging::Sent);
            }
            Ok(hedging) => return ControlFlow::Continue(hedging),
            Err(not_sent) => not_sent,
        };
        let number = self.next_number();
        let Some(stop) = self.decide(HedgeEvent::Stopped(reason)) else {
            return ControlFlow::Continue(Hedging::Until(None));
        };
        // An error from `poll_ready` does not replace an outcome that is still available.
        let error = error.map(|error| {
            let outcome = HedgedOutcome::Of(number, Err(T::Mode::own(error)));
            Over { outcome, stop }
        });
        let over = self.last(stop).or_else(|| self.refused(stop)).or(error);
        let over = over.or_else(|| self.too_long(stop));
        match over {
            Some(over) => ControlFlow::Break(over),
            None => ControlFlow::Continue(Hedging::Until(None)),
        }
    }

    /// Records that a timer has expired. Returns the end of the call if it is out of time.
    pub(in crate::hedge) fn time_passed(&mut self) -> Option<OverOf<T>> {
        let due = self.upcoming;
        let stop = self.decide(HedgeEvent::TimePassed)?;
        let over = self.last(stop).or_else(|| self.refused(stop)).or_else(|| self.too_long(stop));
        if over.is_none() {
            // Only the next attempt can end the call, so no limit prevents it.
            (self.terms.limits.max_elapsed, self.terms.deadline) = (None, None);
            self.upcoming = due;
        }
        over
    }

    /// Drains the last refused response before the call waits for other attempts, which may need its connection.
    /// Returns the end of the call if the budget refuses the next attempt and none is in flight.
    pub(in crate::hedge) fn release(&mut self, cx: &mut Context<'_>) -> Option<OverOf<T>> {
        let running = self.running.as_ref()?;
        if !matches!(running.last, Some((_, Ok(_)))) {
            return None;
        }
        // A hedge that the budget has not yet confirmed does not need a connection.
        let waits = running.readying.as_ref().is_some_and(|next| next.service.is_some());
        if self.in_flight() == 0 {
            // From now on, only the next attempt can end the call, so it is created first.
            match self.bind(cx) {
                Poll::Ready(None) => {}
                Poll::Ready(Some(stop)) => return self.last(stop),
                // The last outcome is kept, because it is returned if the budget refuses the next attempt.
                Poll::Pending => return None,
            }
        } else if !waits && running.may_be_cut_off() {
            // The last outcome is kept, because it is returned if the attempts in flight are cut off (BUF-8).
            return None;
        }
        let running = self.running.as_mut()?;
        let former = running.last.take();
        self.drain_refused(former, cx);
        None
    }

    /// Creates the next attempt, which then waits until it is due or its service is ready. Returns the reason if it
    /// cannot be created.
    fn bind(&mut self, cx: &mut Context<'_>) -> Poll<Option<StopReason>> {
        let granted = ready!(self.poll_grant(Instant::now(), cx)).and_then(|mut readying| {
            if readying.attempt.is_none() {
                readying.attempt = self.prepare();
            }
            match readying.attempt {
                Some(_) => Ok(readying),
                None => Err(StopReason::BodyNotKept),
            }
        });
        Poll::Ready(match granted {
            Ok(readying) => {
                self.running().readying = Some(readying);
                None
            }
            Err(reason) => self.decide(HedgeEvent::Stopped(reason)),
        })
    }
}
