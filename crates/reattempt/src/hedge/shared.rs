//! The part of a hedged client that its clones share: the policy, and the service that hedges are cloned from.

use std::sync::{Mutex, PoisonError};

/// The state that all clones of a [`Hedge`] share with the calls under way.
pub(crate) struct Shared<S, P> {
    pub(crate) policy: P,
    /// The service that each hedge clones, so that a call without hedges clones nothing. The lock is there
    /// because a service need not be `Sync`; it is held only while the service is cloned.
    spare: Mutex<S>,
}

impl<S: Clone, P> Shared<S, P> {
    pub(crate) fn new(policy: P, service: S) -> Self {
        Self { policy, spare: Mutex::new(service) }
    }

    pub(super) fn spare(&self) -> S {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
