//! The table in force.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use arc_swap::ArcSwap;

use super::PolicyTable;
use crate::protocol::RequestProtocol;

/// The [`PolicyTable`] in force, which can be replaced at any time.
///
/// Clones share the table: keep one to [`replace`](Self::replace) it. The table is kept alive by its clients, even if
/// there is no handle.
pub struct PolicyHandle<P: RequestProtocol> {
    pub(super) current: Arc<Current<P>>,
}

/// The table in force. The table's number is also stored separately, so that a call can compare it without loading the
/// table.
pub(super) struct Current<P: RequestProtocol> {
    pub(super) number: AtomicU64,
    table: ArcSwap<(u64, PolicyTable<P>)>,
    replacing: Mutex<()>,
}

impl<P: RequestProtocol> PolicyHandle<P> {
    /// Creates a handle with this table in force.
    pub fn new(table: PolicyTable<P>) -> Self {
        let table = ArcSwap::from_pointee((0, table));
        Self { current: Arc::new(Current { number: AtomicU64::new(0), table, replacing: Mutex::new(()) }) }
    }

    /// Replaces the table in force. Calls that have already started keep their policies.
    ///
    /// The next call of each client prepares its services for the new table: it clones the client once for each policy.
    pub fn replace(&self, table: PolicyTable<P>) {
        let Current { number, table: in_force, replacing } = &*self.current;
        let replacing = replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let next = number.load(Ordering::Relaxed) + 1;
        let former = in_force.swap(Arc::new((next, table)));
        // Stored after the table, so that a client that reads the new number also finds the new table.
        number.store(next, Ordering::Release);
        // Done before the former table is dropped, because that may run the program's code.
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
    /// Returns the table in force, with its number.
    pub(super) fn table(&self) -> Arc<(u64, PolicyTable<P>)> {
        self.table.load_full()
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
