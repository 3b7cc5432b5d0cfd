//! The state that survives a change to the file: budgets and guards, by section name.

use std::collections::HashMap;
use std::sync::Arc;

use reattempt::RetryBudget;
use reattempt::guard::contract::{SharedGuard, erase};
use reattempt::policies::TableBudget;

use crate::reader::{Document, GuardKind, GuardWord, Policy};

/// A function that takes a policy's name and returns the budget that the policy shares with other processes.
pub(crate) type FleetBudget = Box<dyn Fn(&str) -> TableBudget + Send + Sync>;

/// The budgets and guards of the current policies.
#[derive(Default)]
pub(crate) struct States {
    policies: HashMap<String, State>,
}

/// The state of one policy.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) budget: TableBudget,
    kind: BudgetKind,
    guards: Vec<GuardWord>,
}

#[derive(Clone)]
enum BudgetKind {
    Own(RetryBudget),
    Fleet,
}

impl States {
    /// Returns the states of a document's policies. They reuse as much as possible of the former states.
    ///
    /// A budget or guard is reused if its policy has the same name, and it has the same kind. Several guards of one
    /// kind in a policy are matched by their order.
    pub(crate) fn of(document: &Document, former: &Self, fleet: Option<&FleetBudget>) -> Self {
        let default = Policy::new("", reattempt::profile::standard().shared());
        let policies = document.policies.iter().chain([&default]);
        let state = |policy: &Policy| {
            let former = former.policies.get(&policy.name);
            (policy.name.clone(), State::of(policy, former, fleet))
        };
        Self { policies: policies.map(state).collect() }
    }

    /// Returns the state of a policy. An empty name means the library's defaults.
    pub(crate) fn get(&self, policy: &str) -> Option<&State> {
        self.policies.get(policy)
    }
}

impl State {
    fn of(policy: &Policy, former: Option<&Self>, fleet: Option<&FleetBudget>) -> Self {
        let guards = guards(&policy.guards, former.map(|former| &*former.guards).unwrap_or_default());
        if let Some(fleet) = fleet.filter(|_| policy.is_fleet) {
            let kept = former.filter(|former| matches!(former.kind, BudgetKind::Fleet));
            let budget = kept.map_or_else(|| fleet(&policy.name), |former| Arc::clone(&former.budget));
            return Self { budget, kind: BudgetKind::Fleet, guards };
        }
        let own = policy.profile.budget.clone().unwrap_or_default();
        let own = match former.map(|former| &former.kind) {
            Some(BudgetKind::Own(former)) => own.continuing(former),
            _ => own,
        };
        Self { budget: Arc::new(own.clone()), kind: BudgetKind::Own(own), guards }
    }

    /// Returns the budget, unless the program supplied it.
    pub(crate) fn own_budget(&self) -> Option<&RetryBudget> {
        match &self.kind {
            BudgetKind::Own(budget) => Some(budget),
            BudgetKind::Fleet => None,
        }
    }

    pub(crate) fn guard_words(&self) -> &[GuardWord] {
        &self.guards
    }

    /// Returns the guards for a layer.
    pub(crate) fn guards(&self) -> Vec<SharedGuard> {
        let erased = |word: &GuardWord| match word.kind.clone() {
            GuardKind::Breaker(guard) => erase(guard),
            GuardKind::RateLimit(guard) => erase(guard),
            GuardKind::Bulkhead(guard) => erase(guard),
            GuardKind::Aimd(guard) => erase(guard),
            GuardKind::Vegas(guard) => erase(guard),
            GuardKind::Gradient2(guard) => erase(guard),
            GuardKind::Throttle(guard) => erase(guard),
            GuardKind::Pause(guard) => erase(guard),
        };
        self.guards.iter().map(erased).collect()
    }
}

/// Returns the guards of a policy. A guard that existed before keeps its state and adopts the new settings.
fn guards(words: &[GuardWord], former: &[GuardWord]) -> Vec<GuardWord> {
    let mut left: Vec<_> = former.iter().collect();
    let mut kept = |word: &GuardWord| {
        let place = left.iter().position(|former| former.is_of_kind(word))?;
        let former = left.remove(place);
        former.adopt(word);
        let mut kept = former.clone();
        kept.name.clone_from(&word.name);
        Some(kept)
    };
    words.iter().map(|word| kept(word).unwrap_or_else(|| word.clone())).collect()
}
