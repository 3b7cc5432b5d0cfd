//! The call to which an attempt belongs.
//!
//! Reqwest requests expose no extensions, and layers may replace a request. The call is therefore stored in a
//! thread-local variable while its service is called and polled, like a tracing span.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Shared;

thread_local! {
    static CURRENT: RefCell<Option<Arc<HttpCall>>> = const { RefCell::new(None) };
}

/// A call in flight.
pub(super) struct HttpCall {
    /// The telemetry that measures this call.
    owner: Arc<Shared>,
    /// The nearest enclosing call that belongs to a different `HttpTelemetry`. Calls of the same one are skipped.
    /// Otherwise, calls that start inside each other would form an ever-growing chain.
    outer: Option<Arc<HttpCall>>,
    sent: AtomicU32,
}

impl HttpCall {
    pub(super) fn new(owner: &Arc<Shared>) -> Arc<Self> {
        let outer = CURRENT.with_borrow(|current| {
            let mut outer = current.as_ref();
            while let Some(own) = outer.filter(|call| Arc::ptr_eq(&call.owner, owner)) {
                outer = own.outer.as_ref();
            }
            outer.map(Arc::clone)
        });
        Arc::new(Self { owner: Arc::clone(owner), outer, sent: AtomicU32::new(0) })
    }

    /// Counts an attempt and returns the number of earlier ones, which is 0 outside a call.
    pub(super) fn count_attempt(owner: &Arc<Shared>) -> u32 {
        CURRENT.with_borrow(|current| {
            let mut call = current.as_ref();
            while let Some(other) = call.filter(|call| !Arc::ptr_eq(&call.owner, owner)) {
                call = other.outer.as_ref();
            }
            call.map_or(0, |call| call.sent.fetch_add(1, Ordering::Relaxed))
        })
    }

    /// Returns the number of attempts after the first.
    pub(super) fn resends(&self) -> u32 {
        self.sent.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// Makes the call current until the guard is dropped.
    pub(super) fn enter(self: &Arc<Self>) -> EnteredCall {
        EnteredCall { outer: CURRENT.replace(Some(Arc::clone(self))) }
    }
}

/// Restores the outer call when it is dropped, even by a panic.
pub(super) struct EnteredCall {
    outer: Option<Arc<HttpCall>>,
}

impl Drop for EnteredCall {
    fn drop(&mut self) {
        CURRENT.set(self.outer.take());
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;

    use super::*;
    use crate::labels::Servers;

    /// Nested calls of the same `HttpTelemetry` do not keep each other alive.
    #[test]
    fn nested_calls_keep_no_chain() {
        let telemetry = || Arc::new(Shared { outputs: Vec::new(), servers: Arc::new(Servers::new(1)) });
        let (owner, other) = (telemetry(), telemetry());
        let outermost = HttpCall::new(&other);
        let _outermost = outermost.enter();
        let call = HttpCall::new(&owner);
        let _entered = call.enter();
        let inner = HttpCall::new(&owner);
        assert!(inner.outer.as_ref().is_some_and(|outer| Arc::ptr_eq(outer, &outermost)));
        let _inner = inner.enter();
        assert_eq!((HttpCall::count_attempt(&other), HttpCall::count_attempt(&other)), (0, 1));
    }

    /// A panic in an inner service leaves no call in the thread-local variable, so later attempts do not count as its
    /// resends.
    #[test]
    fn panic_restores_outer_call() {
        let owner = Arc::new(Shared { outputs: Vec::new(), servers: Arc::new(Servers::new(1)) });
        let panicked = catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _entered = HttpCall::new(&owner).enter();
            assert_eq!((HttpCall::count_attempt(&owner), HttpCall::count_attempt(&owner)), (0, 1));
            std::panic::resume_unwind(Box::new("as scripted"));
        }));
        assert!(panicked.is_err());
        assert_eq!((HttpCall::count_attempt(&owner), HttpCall::count_attempt(&owner)), (0, 0));
    }
}
