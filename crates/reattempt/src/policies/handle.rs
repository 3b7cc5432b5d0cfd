//! The current policy table, and a handle that replaces it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use reattempt_core::snapshot::{Inspect, Part};
use reattempt_engine::protocol::RequestProtocol;

use super::PolicyTable;

/// A handle to the current [`PolicyTable`], which can be replaced at any time.
///
/// Clones share the table, so keep a clone to [`replace`](Self::replace) the table later. Clients keep the table alive
/// even if all handles are dropped.
pub struct PolicyHandle<P: RequestProtocol> {
    pub(super) current: Arc<Current<P>>,
}

/// The current table. Its number is also stored separately, so that a call can compare it without loading the table.
pub(super) struct Current<P: RequestProtocol> {
    pub(super) number: AtomicU64,
    table: ArcSwap<(u64, PolicyTable<P>)>,
    replacing: Mutex<()>,
}

impl<P: RequestProtocol> PolicyHandle<P> {
    /// Creates a handle with this table as the current one.
    pub fn new(table: PolicyTable<P>) -> Self {
        let table = ArcSwap::from_pointee((0, table));
        Self { current: Arc::new(Current { number: AtomicU64::new(0), table, replacing: Mutex::new(()) }) }
    }

    /// Replaces the current table. Calls that have already started keep their policies.
    ///
    /// The next call of each client clones the inner service once for each policy in the new table.
    pub fn replace(&self, table: PolicyTable<P>) {
        let Current { number, table: in_force, replacing } = &*self.current;
        let replacing = replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = number.load(Ordering::Relaxed) + 1;
        let former = in_force.swap(Arc::new((next, table)));
        // Stored after the table, so that a client that reads the new number also finds the new table.
        number.store(next, Ordering::Release);
        // Unlocks before the old table is dropped, because dropping it may run user code.
        drop(replacing);
        drop(former);
    }

    /// Returns a handle that does not keep the table alive.
    pub fn downgrade(&self) -> WeakPolicyHandle<P> {
        WeakPolicyHandle(Arc::downgrade(&self.current))
    }
}

/// A [`PolicyHandle`] that does not keep its table alive.
pub struct WeakPolicyHandle<P: RequestProtocol>(Weak<Current<P>>);

impl<P: RequestProtocol> WeakPolicyHandle<P> {
    /// Returns the handle, unless all handles, layers and clients of the table were dropped.
    pub fn upgrade(&self) -> Option<PolicyHandle<P>> {
        self.0.upgrade().map(|current| PolicyHandle { current })
    }
}

impl<P: RequestProtocol> fmt::Debug for WeakPolicyHandle<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakPolicyHandle").finish_non_exhaustive()
    }
}

impl<P: RequestProtocol> Current<P> {
    /// Returns the current table with its number.
    pub(super) fn table(&self) -> Arc<(u64, PolicyTable<P>)> {
        self.table.load_full()
    }
}

/// Shows the limits and the endpoints of each policy, the default first. The others are named by the numbers of
/// [`choose_by`](PolicyTable::choose_by). `version` counts the replacements.
///
/// A policy does not know the types of its budget and guards, so add these to the snapshot by their own handles.
impl<P: RequestProtocol> Inspect for PolicyHandle<P> {
    fn inspect(&self, now: Duration) -> Part {
        let current = self.current.table();
        let (version, table) = &*current;
        let stacks = table.stacks.iter().enumerate().map(|(number, stack)| {
            let name = if number == 0 { "default".to_owned() } else { number.to_string() };
            let endpoints = stack.endpoints.iter().map(|layer| layer.endpoints().inspect(now));
            stack.policy.limits().inspect(Part::new("policy", name)).parts(endpoints)
        });
        Part::new("policy_table", "").field("version", *version).parts(stacks)
    }
}

impl<P: RequestProtocol> Clone for PolicyHandle<P> {
    fn clone(&self) -> Self {
        Self { current: Arc::clone(&self.current) }
    }
}

impl<P: RequestProtocol + fmt::Debug> fmt::Debug for PolicyHandle<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PolicyHandle").field(&self.current.table().1).finish()
    }
}
