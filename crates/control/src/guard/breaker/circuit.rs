//! One destination's breaker, shared by threads: a machine guarded by a lock, a tally of calls, and a gate word. While
//! the breaker is closed, the tally counts calls without the lock. While it is open, the gate refuses calls without the
//! lock.

use std::mem;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reattempt_core::guard::{GuardKind, Reason, Refused};

use super::super::time::nanos;
use super::super::usual_latency::UsualLatency;
use super::changes::{BreakerState, Changes, StateChange};
use super::counts::{Counts, Outcome};
use super::machine::{Ending, Machine};
use super::rules::Rules;
use super::tally::{BreakerNote, Tally};
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

/// The gate value of a breaker that is forced open.
const FORCED: u64 = u64::MAX;

pub(crate) struct Circuit {
    pub(crate) destination: Arc<str>,
    tally: Tally,
    /// The nanosecond until which calls are refused, or 0 if the machine must decide.
    gate: AtomicU64,
    changes: Arc<Changes>,
    /// Measured by the calls that the machine records: one of each bucket, and those in flight when a bucket ends.
    pub(crate) latency: UsualLatency,
    state: Mutex<LockedMachine>,
}

struct LockedMachine {
    machine: Machine,
    rules: Arc<Rules>,
}

impl Circuit {
    pub(crate) fn new(destination: Arc<str>, rules: Arc<Rules>) -> Self {
        let (machine, changes) = (Machine::new(&rules), Arc::clone(&rules.changes));
        let state = Mutex::new(LockedMachine { machine, rules });
        let (gate, latency) = (AtomicU64::new(0), UsualLatency::default());
        Self { destination, tally: Tally::new(), gate, changes, latency, state }
    }

    /// Admits a call without the lock, if the circuit is closed and nothing else is due.
    #[inline]
    pub(crate) fn admit_closed(&self, now: Duration) -> Option<BreakerNote> {
        self.tally.admit(now)
    }

    /// Decides whether to admit a call that takes at most `timeout`. Returns `None` if the circuit was removed from the
    /// table.
    #[inline]
    pub(crate) fn admit(&self, now: Duration, timeout: Option<Duration>) -> Option<Result<BreakerNote, Refused>> {
        if let Some(note) = self.admit_closed(now) {
            return Some(Ok(note));
        }
        if let Some(refused) = self.refusal(now) {
            return Some(Err(refused));
        }
        self.with(|rules, machine| (!machine.retired).then(|| machine.admit(rules, now, timeout)))
    }

    /// Returns the decision for a call, without recording the call.
    pub(crate) fn would_admit(&self, now: Duration) -> Result<(), Refused> {
        if let Some(refused) = self.refusal(now) {
            return Err(refused);
        }
        self.with(|rules, machine| {
            machine.advance(rules, now);
            machine.would_admit(rules)
        })
    }

    /// Records a success. Returns `false` if the caller must use [`end_call`](Self::end_call).
    #[inline]
    pub(crate) fn succeed(&self, note: &BreakerNote, now: Duration) -> bool {
        self.tally.succeed(note, now)
    }

    /// Returns `true` if [`succeed`](Self::succeed) would record a success.
    #[inline]
    pub(crate) fn takes_success(&self, note: &BreakerNote) -> bool {
        self.tally.takes_success(note)
    }

    /// Records the end of a call. The user's trip rule runs between two steps, without the lock.
    pub(crate) fn end_call(&self, note: BreakerNote, ending: Ending, ready_to_trip: impl FnOnce(&Counts) -> bool) {
        if ending.outcome == Outcome::Success && self.succeed(&note, ending.now) {
            return;
        }
        let counts = self.with(|rules, machine| machine.end_call(rules, note, ending));
        if counts.is_some_and(|counts| ready_to_trip(&counts)) {
            self.with(|rules, machine| machine.trip(rules, note.generation, ending.asked));
        }
    }

    /// Runs one step of the machine, sets the gate, and queues the changes in their order.
    #[inline(never)]
    pub(crate) fn with<R>(&self, step: impl FnOnce(&Rules, &mut Machine) -> R) -> R {
        let mut state = self.lock();
        let LockedMachine { machine, rules } = &mut *state;
        self.take_tally(machine);
        let result = step(rules, machine);
        if !machine.changed.is_empty() {
            self.gate.store(gate(machine), Ordering::Release);
            for (from, to) in machine.changed.drain(..) {
                if rules.on_state_change.is_some() {
                    let (name, destination) = (Arc::clone(&rules.name), Arc::clone(&self.destination));
                    self.changes.push(StateChange { name, destination, from, to });
                }
            }
        }
        machine.open_epoch(rules).iter().for_each(|epoch| self.tally.open(epoch));
        result
    }

    /// Closes the tally and adds its counts to the machine.
    fn take_tally(&self, machine: &mut Machine) {
        let (calls, successes) = self.tally.close();
        machine.add(calls, successes);
    }

    /// Adopts new settings. Returns the previous ones, whose destructors may be user code.
    #[must_use]
    pub(crate) fn adopt(&self, rules: Arc<Rules>) -> Arc<Rules> {
        let mut state = self.lock();
        let LockedMachine { machine, rules: own } = &mut *state;
        self.take_tally(machine);
        machine.adopt(own, &rules);
        let former = mem::replace(own, rules);
        machine.open_epoch(own).iter().for_each(|epoch| self.tally.open(epoch));
        former
    }

    /// Returns the changes waiting for the callback.
    #[inline]
    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Returns the current settings.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        Arc::clone(&self.lock().rules)
    }

    fn lock(&self) -> MutexGuard<'_, LockedMachine> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Retires the circuit if it is in its initial state at `now`. If `forgets`, it is also closed and retired in any
    /// other state, unless the user has forced it open. Returns `true` if it was retired.
    pub(crate) fn retire(&self, now: Duration, forgets: bool, is_idle: &dyn Fn() -> bool) -> bool {
        self.with(|rules, machine| {
            machine.advance(rules, now);
            // Called only once, because a call arriving between two checks would lose its state.
            if is_idle() {
                if forgets && machine.state != BreakerState::ForcedOpen {
                    machine.force(rules, BreakerState::Closed, now);
                }
                machine.retired = machine.is_initial();
            }
            machine.retired
        })
    }

    /// Returns the refusal if the circuit is open, without taking the lock.
    #[inline]
    pub(crate) fn refusal(&self, now: Duration) -> Option<Refused> {
        let gate = self.gate.load(Ordering::Acquire);
        let refused = |reason| Refused::new(GuardKind::CIRCUIT_BREAKER, reason);
        if gate == FORCED {
            return Some(refused(Reason::Isolated));
        }
        let wait = gate.saturating_sub(nanos(now));
        (wait > 0).then(|| refused(Reason::Open).after_nanos(wait))
    }
}

fn gate(machine: &Machine) -> u64 {
    match (machine.state, machine.expiry) {
        (BreakerState::ForcedOpen, _) => FORCED,
        (BreakerState::Open, Some(expiry)) => nanos(expiry).min(FORCED - 1),
        _ => 0,
    }
}
