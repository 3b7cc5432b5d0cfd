//! The state that all clones of a retried or hedged client share: the policy and the spare instance.

use std::sync::{Mutex, PoisonError};

use reattempt_control::Trail;
use tower_service::Service;

use crate::call::clock::Instant;
use crate::call::frame::{Frame, Tried};
use crate::call::layer_terms::LayerTerms;

/// The state that a client's clones and its calls in flight share.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct Shared<S, Policy> {
    pub(crate) policy: Policy,
    /// The instance that is cloned for retries. A call with one attempt clones nothing. A call's first retry uses a
    /// clone of the spare instance. Each later retry uses a clone of the previous retry's instance, so changes to its
    /// state carry over. The last clone becomes the spare instance. Each hedge uses a clone of it.
    ///
    /// The spare instance was never polled for readiness, so it reserves nothing.
    ///
    /// The lock is needed because services need not be `Sync`. It is held only while a clone is made.
    spare: Mutex<S>,
}

impl<S: Clone, Policy> Shared<S, Policy> {
    /// Creates the shared state with the first spare instance.
    pub fn new(policy: Policy, service: S) -> Self {
        Self { policy, spare: Mutex::new(service) }
    }

    /// Returns an instance for the retries of one call, or for one hedge.
    pub fn spare(&self) -> S {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stores the instance that sent a call's last retry as the spare instance.
    pub fn give_back(&self, service: S) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *spare, service);
        // Dropped outside the lock, because a service's destructor may make calls.
        drop(spare);
        drop(before);
    }
}

/// Sends an attempt after the first, if possible to an endpoint that the call has not tried. Returns the future and the
/// endpoint. `deadline` is the call's deadline, and `terms` are those of the attempt.
// Not used for the first attempt, because returning a pair would move its future once more.
pub fn send_next<S: Service<A>, A>(
    service: &mut S,
    attempt: A,
    trail: &Trail,
    deadline: Option<Instant>,
    terms: Option<LayerTerms>,
) -> (S::Future, Tried) {
    let mut frame = Frame::next(trail, deadline, terms);
    let sent = service.call(attempt);
    (sent, frame.close())
}
