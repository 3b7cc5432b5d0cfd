//! The client that chooses a policy for each call.

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use arc_swap::{ArcSwap, Guard};
use reattempt_engine::protocol::{ReadRequest, RequestProtocol};
use reattempt_engine::wall::{Sending, Shared as Retries, send_method};
use reattempt_engine::{CallOptions, Retry};
use tower_service::Service;

use super::attempts::{Attempts, Seat};
use super::{PolicyHandle, PolicyTable, TablePolicy};

/// A client whose calls are retried under one of the policies.
type Stack<S, P> = Retry<Attempts<S, P>, TablePolicy<P>>;

/// A client that chooses a policy from a table for each call, created by [`PolicyTableLayer`](super::PolicyTableLayer).
///
/// Cloning it clones the inner service; everything else is shared. The error type is the same as for a
/// [guarded](reattempt_guard::Guarded) client: tower's `BoxError` for HTTP. A protocol that can express a refusal as a
/// response keeps the inner service's error type.
///
/// A call that succeeds on the first attempt loads the table once. It takes no lock and does not allocate, unless its
/// policy has guards.
pub struct PolicyClient<S, P: RequestProtocol> {
    /// The inner service, under the policy of the latest call.
    stack: Stack<S, P>,
    shared: Arc<Shared<S, P>>,
}

struct Shared<S, P: RequestProtocol> {
    handle: PolicyHandle<P>,
    ready: ArcSwap<Ready<S, P>>,
    /// An instance that is cloned for each policy of a new table. It was never polled for readiness.
    spare: Mutex<S>,
}

/// The services that a client prepared for the current table.
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

    /// Returns a handle to this client with options for all its calls. These options override the policies' settings. A
    /// request's own options override both.
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

    send_method!(Sending<Self, Req, <Self as Service<Req>>::Future>);
}

impl<S: Clone, P: RequestProtocol + Clone> Shared<S, P> {
    /// Returns the services for the current table.
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
        // The lock ensures that concurrent calls prepare the services only once.
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.handle.current.table();
        let former = self.ready.load_full();
        if former.table.0 >= table.0 {
            return former;
        }
        let ready = Arc::new(Ready::of(table, &*spare));
        self.ready.store(Arc::clone(&ready));
        // Unlocks before the old services are dropped, because dropping them may run user code.
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

    /// Starts the call under the request's policy. Its first attempt uses the inner service that is ready.
    fn call(&mut self, request: Req) -> Self::Future {
        let ready = self.shared.ready();
        let place = ready.table.1.choose(P::view(&request));
        if let Some(Prepared { retries, seat }) = ready.policies.get(place) {
            // Consecutive calls usually have the same policy, so nothing is cloned for them.
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
