//! The turns of calls: the time of the next turn, and the rule that moves the interval.
//!
//! All callers take turns in a single order, so the rate is one call per interval. With the schedule's rule, clients
//! would use 50 % to 85 % of a service with a capacity of 1/s. If the service counts calls per second, they would use 4
//! %. Four changes raise this to 80 % or more for a token bucket, a bounded queue and a one-second window. The same is
//! true of a service that requires an exact gap, if the timer can measure the gap. With a gap of 0.2 ms and a timer
//! resolution of 1 ms, clients use 17 % to 40 % of the service. With a resolution of 1 µs, they use more than 80 %, if
//! responses take 0.1 ms (`lab responsive --turns --timer 1us`).
//!
//! - A success counts only if its call was admitted after the last move in *either* direction. Otherwise successes at
//!   an earlier, longer interval would shorten an interval at which calls are refused.
//! - A step down is a probe. If a call admitted after it is refused, the step is undone, and the interval does not
//!   grow. The service accepted a whole run at the previous interval.
//! - Refusals without a success in between lengthen the interval further, but count as one run. Afterwards, each
//!   success halves the interval, until it is one move above its value at the start of the run.
//! - Calls that arrive further apart than the interval are not delayed. With a factor of 1.5, it takes 28 refusals to
//!   get from 10 µs to 1 s. A service with a capacity of 1/s and a load of 1.2/s refuses that many in two minutes. The
//!   first refusal after a success therefore starts from the time between the last two turns, if that is longer than
//!   the interval. It starts at most four moves up, because a single long pause is no evidence about the service.
//!
//! Here a single bit, in the word for moves up, guards moves in both directions. Outcomes during a move are ignored, as
//! in the schedule's rule. A success recorded at the same time as a refusal may count in the next run.

use reattempt_core::Random;

use super::{DOWNS, MOVING, NOTED, ONE_SUCCESS, Pace, RUN, UPS, drawn, replace};
use crate::rule::Rule;
use crate::sync::{AtomicU64, Ordering};

/// The delay in nanoseconds that a turn may have without delaying the next one. Timers have a resolution of
/// milliseconds, and intervals may be shorter.
const LATE: u64 = 2_000_000;

/// A reserved turn. The default value is the turn of a call sent while the interval was 0.
#[derive(Debug, PartialEq, Eq, Default)]
pub struct ReservedTurn {
    /// The time of the previous turn, or 0 if there was none.
    before: u64,
    /// The time between the two previous turns.
    gap_before: u64,
    /// The time of the turn, or 0 if none was taken.
    at: u64,
}

/// The state of the rule for turns. `before` and `start` are written only under the claim.
pub(crate) struct Turns {
    /// The interval before the last move if that was a step down, or else 0.
    before: AtomicU64,
    /// The interval at which the last run of refusals began.
    start: AtomicU64,
    /// 1 while no call has succeeded since the last refusal.
    refused: AtomicU64,
    /// The time of the last turn in nanoseconds, or 0 before the first.
    last: AtomicU64,
    /// The time between the last two turns.
    gap: AtomicU64,
}

impl Turns {
    pub(crate) fn new() -> Self {
        Self {
            before: AtomicU64::new(0),
            start: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            last: AtomicU64::new(0),
            gap: AtomicU64::new(0),
        }
    }
}

impl Pace {
    /// Returns the time of the turn behind `ahead` other callers, or `now` if the interval is 0.
    pub(crate) fn turn_due(&self, now: u64, ahead: u64) -> u64 {
        match (self.interval(), self.turns.last.load(Ordering::Acquire)) {
            (0, _) => now,
            (interval, 0) => due(now, interval, ahead),
            (interval, last) => due(last, interval, ahead),
        }
    }

    /// Takes that turn, or returns the time at which it is due. After an interval of 0, the first turn is one interval
    /// away.
    pub(crate) fn reserve_turn(&self, now: u64, ahead: u64) -> Result<ReservedTurn, u64> {
        loop {
            let interval = self.interval();
            if interval == 0 {
                return Ok(ReservedTurn::default());
            }
            let last = self.turns.last.load(Ordering::Acquire);
            if last == 0 {
                replace(&self.turns.last, 0, now.max(1));
                continue;
            }
            let due = due(last, interval, ahead);
            if due > now {
                return Err(due);
            }
            let at = due.max(now.saturating_sub(LATE));
            if replace(&self.turns.last, last, at) {
                let gap_before = self.turns.gap.swap(at - last, Ordering::AcqRel);
                return Ok(ReservedTurn { before: last, gap_before, at });
            }
        }
    }

    /// Returns a turn, unless another was taken after it. Returns `true` if the next turn is now due earlier.
    pub(crate) fn give_back(&self, turn: ReservedTurn) -> bool {
        let ReservedTurn { before, gap_before, at } = turn;
        let given = at != 0 && replace(&self.turns.last, at, before);
        if given {
            // A turn taken in the meantime has set its own gap.
            replace(&self.turns.gap, at - before, gap_before);
        }
        given
    }

    /// Records that a call was refused.
    pub(crate) fn refused_in_turn(&self, note: u64, rule: &Rule, random: &mut dyn Random) {
        let up = self.up.load(Ordering::Acquire);
        if up & MOVING != 0 || (up >> UPS) & NOTED != note >> 32 {
            return;
        }
        // Drawn before the claim, because the caller's generator may panic, which must not leave a claim behind.
        let drawn = if self.interval() == 0 { 0 } else { drawn(rule, random) };
        if !replace(&self.up, up, up | MOVING) {
            return;
        }
        let interval = self.interval();
        let before = self.turns.before.swap(0, Ordering::AcqRel);
        let was_probe = before != 0 && self.downs() & NOTED == note & NOTED;
        let mut from = if before == 0 { interval } else { before };
        if self.turns.refused.swap(1, Ordering::AcqRel) == 0 {
            if !was_probe {
                let gap = self.turns.gap.load(Ordering::Acquire);
                from = from.max(rule.four_up(from).min(gap));
            }
            self.turns.start.store(from.max(rule.initial), Ordering::Release);
        }
        if interval == 0 {
            self.turns.last.store(0, Ordering::Release);
        }
        let next = if was_probe { from } else { rule.moved_up(from, drawn) };
        self.interval.store(next, Ordering::Release);
        self.down.fetch_and(!RUN, Ordering::AcqRel);
        self.up.fetch_add((1 << UPS) - MOVING, Ordering::AcqRel);
    }

    /// Records that a call has succeeded.
    #[inline]
    pub(crate) fn accepted_in_turn(&self, note: u64, rule: &Rule, random: &mut dyn Random) {
        if self.interval() != 0 {
            self.accepted_while_paced(note, rule, random);
        }
    }

    fn accepted_while_paced(&self, note: u64, rule: &Rule, random: &mut dyn Random) {
        loop {
            let (up, down) = (self.up.load(Ordering::Acquire), self.down.load(Ordering::Acquire));
            let moved_up = up & MOVING != 0 || (up >> UPS) & NOTED != note >> 32;
            if moved_up || (down >> DOWNS) & NOTED != note & NOTED {
                return;
            }
            if self.turns.refused.load(Ordering::Acquire) != 0 {
                self.turns.refused.store(0, Ordering::Release);
            }
            let interval = self.interval();
            let recovered = rule.recovered(self.turns.start.load(Ordering::Acquire));
            let recovering = interval > recovered;
            if !recovering && (down & RUN) + ONE_SUCCESS < u64::from(rule.threshold) * ONE_SUCCESS {
                if replace(&self.down, down, down + ONE_SUCCESS) {
                    return;
                }
                continue;
            }
            let drawn = if recovering { 0 } else { drawn(rule, random) };
            if !replace(&self.up, up, up | MOVING) {
                return;
            }
            // Successes counted by other threads in the meantime belong to the run that ends here.
            if (self.down.load(Ordering::Acquire) ^ down) >> DOWNS == 0 {
                let (before, next) = match recovering {
                    true => (0, (interval / 2).max(recovered)),
                    false => (interval, rule.moved_down(interval, drawn)),
                };
                self.turns.before.store(before, Ordering::Release);
                self.interval.store(next, Ordering::Release);
                self.down.fetch_and(!RUN, Ordering::AcqRel);
                self.down.fetch_add(1 << DOWNS, Ordering::AcqRel);
            }
            self.up.fetch_sub(MOVING, Ordering::AcqRel);
            return;
        }
    }
}

fn due(last: u64, interval: u64, ahead: u64) -> u64 {
    last.saturating_add(interval.saturating_mul(ahead.saturating_add(1)))
}
