//! The state that all clones of a limit share.

use std::hash::RandomState;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::{Patience, RateLimit};

use super::outage::Outage;
use super::portion::Portion;
use super::stats::{RateObserver, RateTally};
use crate::key::key_of;
use crate::rate_rule::Rate;
use crate::store::RateStore;
use crate::table::Table;

pub(super) struct Shared {
    pub(super) store: Arc<dyn RateStore>,
    pub(super) rate: Rate,
    /// The limit of this process while it is alone.
    pub(super) local: RateLimit,
    pub(super) prefix: Box<str>,
    pub(super) patience: Patience,
    pub(super) observer: Option<RateObserver>,
    portions: Table<Portion>,
    pub(super) outage: Outage,
    pub(super) tally: RateTally,
    pub(super) hasher: RandomState,
}

impl Shared {
    pub(super) fn new(
        store: Arc<dyn RateStore>,
        rate: Rate,
        local: RateLimit,
        prefix: Box<str>,
        patience: Patience,
        observer: Option<RateObserver>,
    ) -> Self {
        let (portions, outage) = (Table::new(), Outage::default());
        let (tally, hasher) = (RateTally::default(), RandomState::new());
        Self { store, rate, local, prefix, patience, observer, portions, outage, tally, hasher }
    }

    /// Returns all portions, sorted by destination.
    pub(super) fn portions(&self) -> Vec<Arc<Portion>> {
        let mut portions = self.portions.all();
        portions.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        portions
    }

    /// Returns the portion of a destination, or `None` if there is no room for it.
    pub(super) fn portion(&self, destination: &str, now: Duration) -> Option<Arc<Portion>> {
        let new = |name: &str| {
            let key = key_of(&format!("{}:rate", self.prefix), name);
            Portion::new(name, key, self.rate, self.patience)
        };
        self.portions.get(destination, || now, Portion::is_idle, new)
    }
}
