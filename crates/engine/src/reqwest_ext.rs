//! An extension of reqwest's request builder that sends requests through a wrapped client.

use reqwest::{Request, RequestBuilder, Response};
use tower_service::Service;

use crate::call::protocol::sealed::Sealed;
use crate::send::send;

/// An extension of reqwest's `RequestBuilder` with a method that sends requests through a wrapped client. This trait is
/// sealed.
pub trait ReqwestExt: Sealed {
    /// Builds the request and sends it through a clone of `client`, a `reqwest::Client` inside any layers. The client
    /// that created the builder is not used.
    ///
    /// # Errors
    /// Returns the builder's error (for example, for a bad URL) or the call's error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    ///
    /// ```no_run
    /// use reattempt::{ReqwestExt, RetryLayer};
    /// use tower::ServiceBuilder;
    ///
    /// # async fn example() -> Result<(), reqwest::Error> {
    /// let http = reqwest::Client::new();
    /// let retrying = ServiceBuilder::new().layer(RetryLayer::http()).service(http.clone());
    ///
    /// let response = http.get("http://one.example/").send_with(&retrying).await?;
    /// # Ok(())
    /// # }
    /// ```
    fn send_with<S>(self, client: &S) -> impl Future<Output = Result<Response, S::Error>> + use<S, Self>
    where
        S: Service<Request, Response = Response> + Clone,
        S::Error: From<reqwest::Error>;
}

impl ReqwestExt for RequestBuilder {
    fn send_with<S>(self, client: &S) -> impl Future<Output = Result<Response, S::Error>> + use<S>
    where
        S: Service<Request, Response = Response, Error: From<reqwest::Error>> + Clone,
    {
        let client = client.clone();
        async move { send(client, self.build()?).await }
    }
}

impl Sealed for reqwest::RequestBuilder {}
