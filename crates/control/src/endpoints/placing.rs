//! New places for the endpoints of a set.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use super::ejections::{Ejections, name_of};
use super::endpoint_set::{EndpointSet, millis};
use super::events::EndpointEvent;
use super::place::Place;

impl<T> EndpointSet<T> {
    /// Gives each endpoint the place that `place` returns for its name and its place so far. Endpoints keep their state
    /// and their services. `place` is called without a lock. If another update moves an endpoint meanwhile, that
    /// update wins. Returns the events that the change caused, or `None` if there were none.
    pub fn place_again(&self, place: impl Fn(&str, Place) -> Place, now: Duration) -> Option<Box<[EndpointEvent]>> {
        let known: Vec<_> = self.lock().records.iter().map(|record| (name_of(record), record.place)).collect();
        let placed = known.into_iter().map(|(name, old)| (place(&name, old), old, name));
        let moves = placed.filter(|(new, old, _)| new != old).map(|(new, old, name)| (name, (old, new)));
        let moves: HashMap<_, _> = moves.collect();
        if moves.is_empty() {
            return None;
        }
        self.change(millis(now), |ejections| ejections.place(&moves))
    }
}

impl<T> Ejections<T> {
    /// Moves endpoints from their old to their new place, unless their place has changed since.
    fn place(&mut self, moves: &HashMap<Arc<str>, (Place, Place)>) {
        for record in &mut self.records {
            if let Some((_, new)) = moves.get(&name_of(record)).filter(|(old, _)| *old == record.place) {
                record.place = *new;
            }
        }
        self.records.sort_by_key(|record| record.place.part());
    }
}
