//! `Hedge::send`: one call through a shared handle, without `&mut`.

use tower_service::Service;

use super::Hedge;
use crate::send::send;

impl<S, Policy> Hedge<S, Policy> {
    /// Sends one request through a clone of this handle; see [`Retry::send`](crate::Retry::send).
    ///
    /// # Errors
    /// Returns the call's error, or the error of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels every attempt in flight.
    pub fn send<Req>(
        &self,
        request: Req,
    ) -> impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<Req, S, Policy>
    where
        Self: Service<Req> + Clone,
    {
        send(self.clone(), request)
    }
}
