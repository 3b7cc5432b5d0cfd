//! The permits of a call's hedges.

use alloc::vec::Vec;
use core::time::Duration;
use core::{fmt, mem};

use crate::{Account, Budget, Evidence, Failure, FailureKind, PaidRetry, Permit, StopReason};

/// The budget permits of a call's hedges, held until the call ends.
///
/// A hedge's permit is spent only when the hedge ends, because until then an inner layer may still refuse to send the
/// hedge. If this value is dropped, the permits of the hedges in flight are spent, because they were sent.
#[derive(Default)]
pub struct HedgePermits {
    in_flight: Vec<(u32, Permit)>,
    /// The paid hedge that ended last.
    last: Option<(u32, PaidRetry)>,
    retries: u32,
}

impl HedgePermits {
    /// Requests a permit for a hedge from the budget. `failure` is the preceding failure, or `None` if the hedge is
    /// sent only because no response has arrived yet.
    ///
    /// # Errors
    /// Returns the stop reason if the budget refuses the hedge.
    pub fn grant<B: Budget + ?Sized>(
        &self,
        failure: Option<Failure>,
        destination: &str,
        now: Duration,
        budget: &B,
    ) -> Result<Permit, StopReason> {
        let failure = failure.unwrap_or(Failure::new(FailureKind::Timeout));
        budget.acquire(destination, &failure, now).ok_or(StopReason::BudgetExhausted)
    }

    /// Records a failed attempt with the budget. [`grant`](Self::grant) decides whether a hedge follows.
    pub fn on_failure<B: Budget + ?Sized>(evidence: &Evidence, destination: &str, now: Duration, budget: &B) {
        budget.on_failure(destination, evidence, now);
    }

    /// Records that a hedge is being sent, as attempt `number`.
    pub fn on_send(&mut self, number: u32, permit: Permit) {
        self.in_flight.push((number, permit));
    }

    /// Records that attempt `number` has ended. Has no effect if the attempt has no permit.
    pub fn on_end(&mut self, number: u32) {
        if let Some(permit) = self.take(number) {
            self.retries = self.retries.saturating_add(1);
            self.last = Some((number, permit.spend()));
        }
    }

    /// Records that an inner layer refused to send attempt `number`, and returns its permit to the budget.
    pub fn on_refusal(&mut self, number: u32) {
        drop(self.take(number));
    }

    fn take(&mut self, number: u32) -> Option<Permit> {
        let place = self.in_flight.iter().position(|(of, _)| *of == number)?;
        Some(self.in_flight.remove(place).1)
    }

    /// Ends the call. `winner` is the number of the winning attempt, or 0 if there is none. The permits of the hedges
    /// in flight are spent.
    pub fn end_call(&mut self, winner: u32) -> Account {
        let last = self.last.take().filter(|(number, _)| *number == winner);
        let retries = mem::take(&mut self.retries).saturating_add(self.spend_in_flight());
        Account::new(last.map(|(_, paid)| paid).unwrap_or_default(), retries)
    }

    /// Spends the permits of the hedges in flight. Returns their number.
    fn spend_in_flight(&mut self) -> u32 {
        let lost = self.in_flight.drain(..).map(|(_, permit)| drop(permit.spend())).count();
        u32::try_from(lost).unwrap_or(u32::MAX)
    }
}

impl Drop for HedgePermits {
    fn drop(&mut self) {
        self.spend_in_flight();
    }
}

impl fmt::Debug for HedgePermits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HedgePermits")
            .field("in_flight", &self.in_flight.len())
            .field("retries", &self.retries)
            .finish_non_exhaustive()
    }
}
