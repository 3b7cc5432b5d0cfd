//! The budgets of clients, and clients that restart with a new one.

use std::sync::Arc;

use super::{Simulation, Watch};
use crate::storm::fleet::Fleet;
use crate::storm::policy::{ClientBudget, Policy};

/// Creates the budget of a client, which starts now.
pub(super) fn new_budget(policy: &Policy, fleet: Option<&Fleet>, seed: u64) -> ClientBudget {
    match fleet {
        Some(fleet) => Arc::new(fleet.budget_of_client(seed)),
        None => policy.budget_of_client(),
    }
}

impl<W: Watch> Simulation<'_, W> {
    /// Gives a client a new budget, if it has restarted since its last failure.
    pub(super) fn restart(&mut self, client: u32) {
        let Some(every) = self.scene.restart_every else { return };
        let restarts = self.queue.now() / every;
        let client = &mut self.clients[client as usize];
        if client.restarts != restarts {
            client.restarts = restarts;
            client.budget = new_budget(self.policy, self.fleet.as_ref(), client.seed);
        }
    }
}
