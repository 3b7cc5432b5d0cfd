//! The client that chooses a policy for each call.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use arc_swap::{ArcSwap, Guard};
use tower_service::Service;

use super::attempts::{Attempts, Seat};
use super::{PolicyHandle, PolicyTable, TablePolicy};
use crate::call::options::CallOptions;
use crate::protocol::{ReadRequest, RequestProtocol};
use crate::retry::Retry;
use crate::send::send_method;
use crate::shared::Shared as Retries;

/// A client that is retried by one of the policies.
type Stack<S, P> = Retry<Attempts<S, P>, TablePolicy<P>>;

/// A client that chooses a policy from a table for each call, created by [`PolicyTableLayer`](super::PolicyTableLayer).
///
/// Cloning it clones the inner service and shares everything else. The error type is that of a
/// [guarded](crate::guard::Guarded) client: tower's `BoxError` for HTTP, and the inner service's own for a protocol
/// that has a response for refusals.
///
/// A call that succeeds at once loads the table once, without a lock or an allocation, unless its policy has guards.
pub struct PolicyClient<S, P: RequestProtocol> {
    /// The inner service, under the policy of the latest call.
    stack: Stack<S, P>,
    shared: Arc<Shared<S, P>>,
}

struct Shared<S, P: RequestProtocol> {
    handle: PolicyHandle<P>,
    ready: ArcSwap<Ready<S, P>>,
    /// The instance from which each policy's spare instance is cloned. It was never polled for readiness.
    spare: Mutex<S>,
}

/// The services that a client's calls use for the table in force.
struct Ready<S, P: RequestProtocol> {
    table: Arc<(u64, PolicyTable<P>)>,
    policies: Vec<Prepared<S, P>>,
}

/// One policy, prepared for a client.
struct Prepared<S, P: RequestProtocol> {
    retries: Arc<Retries<Attempts<S, P>, TablePolicy<P>>>,
    seat: Seat<P>,
}

impl<S: Clone, P: RequestProtocol + Clone> Ready<S, P> {
    fn of(table: Arc<(u64, PolicyTable<P>)>, spare: &S) -> Self {
        let prepared = |stack| {
            let seat = Seat::of(stack);
            let attempts = seat.seat(spare.clone());
            Prepared { retries: Arc::new(Retries::new(stack.policy.clone(), attempts)), seat }
        };
        let policies = table.1.stacks.iter().map(prepared).collect();
        Self { table, policies }
    }
}

impl<S: Clone, P: RequestProtocol + Clone> PolicyClient<S, P> {
    pub(super) fn new(handle: PolicyHandle<P>, inner: S) -> Self {
        let ready = Ready::of(handle.current.table(), &inner);
        let default = &ready.table.1.stacks[0];
        let stack = Retry::new(default.policy.clone(), Seat::of(default).seat(inner.clone()));
        let shared = Shared { handle, ready: ArcSwap::from_pointee(ready), spare: Mutex::new(inner) };
        Self { stack, shared: Arc::new(shared) }
    }

    /// Returns a handle to this client with options for all its calls. They override the policies, and a request's own
    /// options override them.
    pub fn with_options(&self, options: CallOptions) -> Self {
        Self { stack: self.stack.with_options(options), shared: Arc::clone(&self.shared) }
    }
}

impl<S, P: RequestProtocol> PolicyClient<S, P> {
    /// Returns the handle to the table.
    pub fn handle(&self) -> &PolicyHandle<P> {
        &self.shared.handle
    }

    /// Returns the inner service.
    pub fn get_ref(&self) -> &S {
        &self.stack.inner.guarded.inner.inner
    }

    send_method!();
}

impl<S: Clone, P: RequestProtocol + Clone> Shared<S, P> {
    /// Returns the services for the table in force.
    #[inline]
    fn ready(&self) -> Guard<Arc<Ready<S, P>>> {
        let ready = self.ready.load();
        match ready.table.0 == self.handle.current.number.load(Ordering::Acquire) {
            true => ready,
            false => Guard::from_inner(self.prepare()),
        }
    }

    /// Prepares the services for a new table.
    #[cold]
    fn prepare(&self) -> Arc<Ready<S, P>> {
        // Because of the lock, only one of several concurrent calls prepares them.
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.handle.current.table();
        let former = self.ready.load_full();
        if former.table.0 >= table.0 {
            return former;
        }
        let ready = Arc::new(Ready::of(table, &*spare));
        self.ready.store(Arc::clone(&ready));
        // Done before the former services are dropped, because that may run the program's code.
        drop(spare);
        ready
    }
}

impl<S, Req, P> Service<Req> for PolicyClient<S, P>
where
    S: Clone,
    P: ReadRequest<Req> + Clone,
    Stack<S, P>: Service<Req>,
{
    type Response = <Stack<S, P> as Service<Req>>::Response;
    type Error = <Stack<S, P> as Service<Req>>::Error;
    type Future = <Stack<S, P> as Service<Req>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.stack.poll_ready(cx)
    }

    /// Sends the first attempt through the readied inner service, under the request's policy.
    fn call(&mut self, request: Req) -> Self::Future {
        let ready = self.shared.ready();
        let place = ready.table.1.choose(P::view(&request));
        if let Some(Prepared { retries, seat }) = ready.policies.get(place) {
            // A client whose calls all use one policy does not switch.
            if !Arc::ptr_eq(retries, &self.stack.shared) {
                self.stack.shared = Arc::clone(retries);
                seat.take_over(&mut self.stack.inner);
            }
        }
        drop(ready);
        self.stack.call(request)
    }
}

impl<S: Clone, P: RequestProtocol> Clone for PolicyClient<S, P> {
    fn clone(&self) -> Self {
        Self { stack: self.stack.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<S: fmt::Debug, P: RequestProtocol + fmt::Debug> fmt::Debug for PolicyClient<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyClient")
            .field("inner", self.get_ref())
            .field("handle", &self.shared.handle)
            .finish_non_exhaustive()
    }
}
