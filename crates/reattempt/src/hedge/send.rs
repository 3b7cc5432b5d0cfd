//! `Hedge::send`: one call by a shared handle, without `&mut`.

use tower_service::Service;

use super::Hedge;
use crate::send::send;

impl<S, P> Hedge<S, P> {
    /// Sends one request, by a clone of this handle; see [`Retry::send`](crate::Retry::send).
    ///
    /// # Errors
    /// Returns the error of the call, or of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels every attempt under way.
    pub fn send<Req>(
        &self,
        request: Req,
    ) -> impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<Req, S, P>
    where
        Self: Service<Req> + Clone,
    {
        send(self.clone(), request)
    }
}
