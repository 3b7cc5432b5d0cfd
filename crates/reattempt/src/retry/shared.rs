//! The part of a retried client that all its clones share: the policy and the spare instance.

use std::sync::{Mutex, PoisonError};

/// The part of a [`Retry`](super::Retry) that its clones and the calls under way share.
pub(super) struct Shared<S, P> {
    pub(super) policy: P,
    /// The service of the first retry of a call is cloned from here, so that a call that needs none
    /// clones nothing. It sends all retries of its call and is put here afterwards, so that the retries
    /// of the next call go on from there. It was never readied without having sent an attempt since.
    ///
    /// The lock is there because a service need not be `Sync`; only a clone is made under it.
    spare: Mutex<S>,
}

impl<S: Clone, P> Shared<S, P> {
    /// Creates the shared part with the first spare instance.
    pub(super) fn new(policy: P, service: S) -> Self {
        Self { policy, spare: Mutex::new(service) }
    }

    /// Returns the instance for the retries of one call.
    pub(super) fn spare(&self) -> S {
        self.spare.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes back the instance that has sent the retries of a call.
    pub(super) fn give_back(&self, service: S) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::replace(&mut *spare, service);
        // A service's destructor may make calls of its own.
        drop(spare);
        drop(before);
    }
}
