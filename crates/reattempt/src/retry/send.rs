//! `Retry::send`: one call through a shared handle, without `&mut`.

use tower_service::Service;

use super::Retry;
use crate::send::send;

impl<S, Policy> Retry<S, Policy> {
    /// Sends one request through a clone of this handle: waits until the clone is ready, and calls it.
    ///
    /// One handle serves any number of concurrent calls, and need not be `mut`. Each call starts with a copy of the
    /// handle's own state. If a clone of the inner service changes its state during a call, for example opens a
    /// connection, later calls do not see that change. The usual clients share their state between clones; tower's
    /// `Buffer` does so for any service.
    ///
    /// # Errors
    /// Returns the call's error, or the error of an inner service that does not become ready.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call. If a granted retry was not sent, its tokens return to the budget.
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
    ) -> impl Future<Output = Result<<Self as Service<Req>>::Response, <Self as Service<Req>>::Error>> + use<S, Req, Policy>
    where
        Self: Service<Req> + Clone,
    {
        send(self.clone(), request)
    }
}
