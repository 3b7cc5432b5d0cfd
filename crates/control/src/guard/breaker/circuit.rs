//! One destination's breaker as threads share it: its machine behind a lock, and one word that refuses without the lock.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use reattempt_core::guard::{GuardKind, Reason, Refused};

use super::changes::{BreakerState, Changes, StateChange};
use super::counts::Counts;
use super::machine::{Ending, Machine, Pass};
use super::rules::Rules;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// The gate of a breaker that is forced open.
const FORCED: u64 = u64::MAX;

pub(crate) struct Circuit {
    pub(crate) destination: Arc<str>,
    /// The nanosecond until which calls are refused; 0 if the machine has to be asked.
    gate: AtomicU64,
    machine: Mutex<Machine>,
}

impl Circuit {
    pub(crate) fn new(destination: Arc<str>, rules: &Rules) -> Self {
        let machine = Mutex::new(Machine::new(rules));
        Self { destination, gate: AtomicU64::new(0), machine }
    }

    /// Decides about a call. `None`: the circuit has left the table.
    #[inline]
    pub(crate) fn admit(
        &self,
        rules: &Rules,
        changes: &Changes,
        now: Duration,
    ) -> Option<Result<Pass, Refused>> {
        if let Some(refused) = self.refusal(now) {
            return Some(Err(refused));
        }
        self.with(rules, changes, |machine| (!machine.retired).then(|| machine.admit(rules, now)))
    }

    /// Returns the decision about a call, and takes nothing.
    pub(crate) fn check(
        &self,
        rules: &Rules,
        changes: &Changes,
        now: Duration,
    ) -> Result<(), Refused> {
        if let Some(refused) = self.refusal(now) {
            return Err(refused);
        }
        self.with(rules, changes, |machine| {
            machine.advance(rules, now);
            machine.check(rules)
        })
    }

    /// Records the end of a call. The user's trip rule is asked between two steps, without the lock.
    pub(crate) fn end(
        &self,
        rules: &Rules,
        changes: &Changes,
        pass: Pass,
        ending: Ending,
        ready_to_trip: impl FnOnce(&Counts) -> bool,
    ) {
        let counts = self.with(rules, changes, |machine| machine.end(rules, pass, ending));
        if counts.is_some_and(|counts| ready_to_trip(&counts)) {
            self.with(rules, changes, |machine| machine.trip(rules, pass.generation, ending.asked));
        }
    }

    /// Runs one step of the machine, sets the gate, and queues the changes in their order.
    pub(crate) fn with<R>(
        &self,
        rules: &Rules,
        changes: &Changes,
        step: impl FnOnce(&mut Machine) -> R,
    ) -> R {
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        let result = step(&mut machine);
        if !machine.changed.is_empty() {
            self.gate.store(gate(&machine), Ordering::Release);
            for (from, to) in machine.changed.drain(..) {
                if rules.on_state_change.is_some() {
                    let (name, destination) =
                        (Arc::clone(&rules.name), Arc::clone(&self.destination));
                    changes.push(StateChange { name, destination, from, to });
                }
            }
        }
        result
    }

    /// Retires the circuit if it is in its initial state at `now`. Returns `true` if it did.
    pub(crate) fn retire(&self, rules: &Rules, changes: &Changes, now: Duration) -> bool {
        self.with(rules, changes, |machine| {
            machine.advance(rules, now);
            machine.retired = machine.is_initial();
            machine.retired
        })
    }

    #[inline]
    fn refusal(&self, now: Duration) -> Option<Refused> {
        let gate = self.gate.load(Ordering::Acquire);
        if gate == 0 {
            return None;
        }
        let refused = |reason| Refused::new(GuardKind::CircuitBreaker, reason);
        if gate == FORCED {
            return Some(refused(Reason::Isolated));
        }
        let wait = Duration::from_nanos(gate).checked_sub(now)?;
        (!wait.is_zero()).then(|| refused(Reason::Open).after(wait))
    }
}

fn gate(machine: &Machine) -> u64 {
    match (machine.state, machine.expiry) {
        (BreakerState::ForcedOpen, _) => FORCED,
        (BreakerState::Open, Some(expiry)) => {
            u64::try_from(expiry.as_nanos()).unwrap_or(FORCED).min(FORCED - 1)
        }
        _ => 0,
    }
}
