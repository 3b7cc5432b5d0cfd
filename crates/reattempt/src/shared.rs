//! The part of a retried or hedged client that all its clones share: the policy and the spare instance.

use std::sync::{Mutex, PoisonError};

use reattempt_control::Trail;
use tower_service::Service;

use crate::call::frame::{Sending, Tried};

/// The part of a client that its clones and the calls under way share.
pub(crate) struct Shared<S, P> {
    pub(crate) policy: P,
    /// The spare instance. A call that sends one attempt clones nothing. The first retry of a call is sent by a clone
    /// of the spare instance, and each later one by a clone of its forerunner, so a state that calls change goes on.
    /// The last clone becomes the spare instance. Each hedge is sent by a clone of it.
    ///
    /// No instance is kept that was ever polled for readiness, so the spare instance reserves nothing.
    ///
    /// A service need not be `Sync`, hence the lock. Only a clone is made under it.
    spare: Mutex<S>,
}

impl<S: Clone, P> Shared<S, P> {
    /// Creates the shared part with the first spare instance.
    pub(crate) fn new(policy: P, service: S) -> Self {
        Self { policy, spare: Mutex::new(service) }
    }

    /// Returns an instance for the retries of one call, or for one hedge.
    pub(crate) fn spare(&self) -> S {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes the clone of the instance that has sent the last retry of a call.
    pub(crate) fn give_back(&self, service: S) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *spare, service);
        // A service's destructor may make calls of its own.
        drop(spare);
        drop(before);
    }
}

/// Sends an attempt after the first, to an endpoint that the call has not tried if there is one. Returns the endpoint
/// too.
// The first attempt is sent in place: a future in a pair would be moved once more.
pub(crate) fn send_next<S: Service<A>, A>(service: &mut S, attempt: A, trail: Trail) -> (S::Future, Tried) {
    let frame = Sending::next(trail);
    let sent = service.call(attempt);
    (sent, frame.close())
}
