//! Unprocessed attempts and their replacements.

// TR-1, TR-2, TR-6

use std::task::{Context, Poll};

use reattempt_core::event::sent_after_failure;
use reattempt_core::{Evidence, MOST_MOVES, Signs, Undone, Verdict};
use reattempt_replay::ReplayBody;
use tower_service::Service;

use super::HedgeDriver;
use crate::call::clock::Instant;
use crate::call::frame::Tried;
use crate::call::layer_terms::LayerTerms;
use crate::hedge::running::Replacing;
use crate::protocol::{AttemptKind, CallTypes, NextAttempt, Replay, ResultOf, Saved};
use crate::shared::send_next;

impl<T: CallTypes> HedgeDriver<T> {
    /// Returns `true` if this attempt must be replaced, which happens once per call for each kind. Limits do not apply,
    /// and the number of attempts in flight does not change. If the server refused the request, the budget must agree.
    pub(in crate::hedge) fn is_replaced(
        &mut self,
        number: u32,
        undone: Option<Undone>,
        evidence: Option<Evidence>,
    ) -> bool {
        let Some(kind) = undone else { return false };
        // A protocol's code may be no failure, although the attempt was not processed.
        let of_proof = || self.sent_at(number, Evidence::of(&Signs { undone, ..Signs::new(Verdict::Permanent) }));
        let evidence = evidence.unwrap_or_else(of_proof);
        self.can_replace()
            && self.running().resent.insert(kind)
            && (!matches!(kind, Undone::Refused | Undone::Excluded) || self.allows(&evidence))
    }

    /// Returns `true` if this attempt, which a guard refused, moves to another endpoint. A call's attempts do so at
    /// most
    /// `max_attempts` times in total.
    pub(in crate::hedge) fn leaves_guard(&mut self, number: u32) -> bool {
        if !self.can_move(number) {
            return false;
        }
        let most = self.terms.limits.max_attempts;
        let running = self.running();
        running.refusals = running.refusals.saturating_add(1);
        running.refusals <= most
    }

    /// Returns `true` if this attempt, whose endpoint accepted no connection, moves to another one. A call's attempts
    /// do so at most [`MOST_MOVES`] times in total, and only if the budget agrees.
    // C-3
    pub(in crate::hedge) fn leaves_unreachable(&mut self, number: u32, evidence: Evidence) -> bool {
        let moves = self.running.as_ref().map_or(0, |running| running.moves);
        if moves >= MOST_MOVES || !self.can_move(number) || !self.allows(&evidence) {
            return false;
        }
        self.running().moves = moves + 1;
        true
    }

    fn can_move(&self, number: u32) -> bool {
        self.is_elsewhere(number) && self.can_replace()
    }

    /// Returns `true` if there is an endpoint that the call has not tried, as of this attempt. Attempts sent later may
    /// have tried those that were left for this one.
    pub(super) fn is_elsewhere(&self, number: u32) -> bool {
        let (running, first) = (self.running.as_ref(), &self.first);
        let tried = running.map_or((number == 1).then_some(first), |running| running.tried(number, first));
        let last = running.map_or(Some(first), |running| Some(running.last_tried(first)));
        let is_left = |tried: Option<&Tried>| tried.and_then(Tried::pick).map(|pick| pick.elsewhere);
        is_left(tried) == Some(true) && is_left(last) != Some(false)
    }

    /// Returns `true` if the request can be sent again, in place of an attempt, within the call's time.
    fn can_replace(&self) -> bool {
        let end = self.context.deadline.into_iter().chain(self.end_of_hedging()).min();
        let late = end.is_some_and(|end| end <= Instant::now());
        !late && self.saved.as_ref().is_some_and(Saved::at_hand)
    }

    /// Prepares the replacement of this attempt, which ended with `result`.
    pub(in crate::hedge) fn replace(&mut self, number: u32, result: ResultOf<T>) {
        self.start(Instant::now());
        let service = self.shared.spare();
        let running = self.running();
        // Removes the watch on the dropped reader.
        running.watches.retain(|(of, _)| *of != number);
        running.replaced.push(number);
        running.replacing.push(Replacing { number, service, result });
    }

    /// Sends the replacements whose services are ready. Returns an attempt that cannot be replaced after all, with its
    /// result.
    pub(in crate::hedge) fn poll_replacing(&mut self, cx: &mut Context<'_>) -> Option<(u32, ResultOf<T>)> {
        if self.running.as_ref()?.replacing.is_empty() {
            return None;
        }
        let end = self.end_of_hedging();
        let running = self.running.as_mut()?;
        // The wait for a service that is not ready is limited.
        let late = end.is_some_and(|end| end <= Instant::now());
        let at_hand = self.saved.as_ref().is_some_and(Saved::at_hand);
        let mut place = 0;
        while let Some(replacing) = running.replacing.get_mut(place) {
            let ready = if late || !at_hand {
                false
            } else {
                match replacing.service.poll_ready(cx) {
                    Poll::Pending => {
                        place += 1;
                        continue;
                    }
                    Poll::Ready(ready) => ready.is_ok(),
                }
            };
            let Replacing { number, mut service, result } = running.replacing.remove(place);
            let saved = self.saved.take_if(|_| ready);
            let Some(saved) = saved else { return Some((number, result)) };
            let watch = saved.body().map(ReplayBody::watch);
            let protocol = &self.shared.policy.settings.protocol;
            let next = NextAttempt::new(protocol, &self.context, number, AttemptKind::Replacement, false);
            let attempt = protocol.again(saved, next, &mut self.saved);
            running.watches.extend(watch.map(|watch| (number, watch)));
            let trail = running.trail(&self.first);
            let terms = LayerTerms::of(None, &running.source);
            let sent = sent_after_failure(Instant::now().since_epoch());
            running.push(number, sent, send_next(&mut service, attempt, &trail, self.context.deadline, terms));
        }
        None
    }
}
