//! `Pace::send`: one call by a shared handle, without `&mut`.

use tower_service::Service;

use super::{Pace, Paced};
use crate::error_mode::ErrorMode;
use crate::protocol::ClassifyOutcome;
use crate::send::send;

impl<S, K, M> Pace<S, K, M> {
    /// Sends one request, by a clone of this handle; see [`Retry::send`](crate::Retry::send).
    ///
    /// # Errors
    /// Returns the error of the call, or of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call and gives its turn back.
    pub fn send<Req>(
        &self,
        request: Req,
    ) -> impl Future<Output = Result<K::Answer, M::Error>> + use<S, Req, K, M>
    where
        K: Paced<Req>,
        S: Service<Req> + Clone,
        K: ClassifyOutcome<S::Response>,
        M: ErrorMode<S::Error>,
    {
        send(self.clone(), request)
    }
}
