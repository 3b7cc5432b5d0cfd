//! The permits of the hedges of one call.

use alloc::vec::Vec;
use core::{fmt, mem};

use crate::{Account, PaidRetry, Permit};

/// The permits of a call's hedges, until the call ends.
///
/// A hedge's permit is spent when the hedge ends, because a layer on this side may still refuse it. If this value is
/// dropped, the permits of the hedges in flight are spent, because they were sent.
#[derive(Default)]
pub struct HedgePermits {
    call: Permit,
    in_flight: Vec<(u32, Permit)>,
    /// The paid hedge that ended last.
    last: Option<(u32, PaidRetry)>,
    retries: u32,
}

impl HedgePermits {
    /// Sets the permit that a budget issued when the call started.
    pub fn on_start(&mut self, permit: Permit) {
        self.call = permit;
    }

    /// Records that a hedge is being sent, as attempt `number`.
    pub fn on_send(&mut self, number: u32, permit: Permit) {
        self.in_flight.push((number, permit));
    }

    /// Records that attempt `number` has ended. An attempt without a permit changes nothing.
    pub fn on_end(&mut self, number: u32) {
        if let Some(permit) = self.take(number) {
            self.retries = self.retries.saturating_add(1);
            self.last = Some((number, permit.spend()));
        }
    }

    /// Records that a layer on this side refused attempt `number`, and returns its permit.
    pub fn on_refusal(&mut self, number: u32) {
        drop(self.take(number));
    }

    fn take(&mut self, number: u32) -> Option<Permit> {
        let place = self.in_flight.iter().position(|(of, _)| *of == number)?;
        Some(self.in_flight.remove(place).1)
    }

    /// Ends the call with attempt `winner`; 0 if there is none. The permits of the hedges in flight are spent.
    pub fn end(&mut self, winner: u32) -> Account {
        let last = self.last.take().filter(|(number, _)| *number == winner);
        let retries = mem::take(&mut self.retries).saturating_add(self.spend_in_flight());
        let mut account = Account::new(last.map(|(_, paid)| paid).unwrap_or_default(), retries);
        account.on_start(mem::take(&mut self.call));
        account
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
