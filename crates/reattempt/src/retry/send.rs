//! `Retry::send`: one call by a shared handle, without `&mut`.

use tower_service::Service;

use super::Retry;
use crate::send::send;

impl<S, P> Retry<S, P> {
    /// Sends one request by a clone of this handle: waits until the clone is ready, and calls it.
    ///
    /// One handle serves any number of calls at once, and need not be `mut`. Each call starts from the handle's own
    /// state. State that an inner service keeps in a clone, such as a connection of its own, is lost to the next call.
    /// The usual clients share their state between clones; tower's `Buffer` does so for any service.
    ///
    /// # Errors
    /// Returns the error of the call, or of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call. Tokens that were taken for a retry not yet sent return to the budget.
    ///
    /// ```no_run
    /// use bytes::Bytes;
    /// use http::Request;
    /// use http_body_util::Full;
    /// use hyper_util::client::legacy::Client;
    /// use hyper_util::rt::TokioExecutor;
    /// use reattempt::RetryLayer;
    /// use tower::ServiceBuilder;
    ///
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let client = ServiceBuilder::new()
    ///     .layer(RetryLayer::http())
    ///     .service(Client::builder(TokioExecutor::new()).build_http());
    ///
    /// let request = Request::get("http://one.example/").body(Full::<Bytes>::default())?;
    /// let response = client.send(request).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn send<Req>(
        &self,
        request: Req,
    ) -> impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<S, Req, P>
    where
        Self: Service<Req> + Clone,
    {
        send(self.clone(), request)
    }
}
