//! The layer that creates clients for a policy table.

use std::fmt;

use reattempt_engine::protocol::RequestProtocol;
use tower_layer::Layer;

use super::{PolicyClient, PolicyHandle};

impl<P: RequestProtocol> PolicyHandle<P> {
    /// Creates a layer whose clients use this handle's current table.
    pub fn layer(&self) -> PolicyTableLayer<P> {
        PolicyTableLayer { handle: self.clone() }
    }
}

/// A layer whose clients choose a policy for each call, created by [`PolicyHandle::layer`].
pub struct PolicyTableLayer<P: RequestProtocol> {
    handle: PolicyHandle<P>,
}

impl<S: Clone, P: RequestProtocol + Clone> Layer<S> for PolicyTableLayer<P> {
    type Service = PolicyClient<S, P>;

    fn layer(&self, inner: S) -> PolicyClient<S, P> {
        PolicyClient::new(self.handle.clone(), inner)
    }
}

impl<P: RequestProtocol> Clone for PolicyTableLayer<P> {
    fn clone(&self) -> Self {
        Self { handle: self.handle.clone() }
    }
}

impl<P: RequestProtocol + fmt::Debug> fmt::Debug for PolicyTableLayer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyTableLayer").field("handle", &self.handle).finish()
    }
}
