//! An extension of reqwest's request builder that sends requests through a wrapped client.

use reqwest::{Request, RequestBuilder, Response};
use tower_service::Service;

use crate::call::protocol::sealed::Sealed;
use crate::send::send;

/// A request builder of reqwest 0.13. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "`send_with` of `ReqwestExt` sends a `RequestBuilder` of reqwest 0.13, not a `{Self}`",
    label = "no `RequestBuilder` of reqwest 0.13",
    note = "`cargo tree -i reqwest` lists the versions of reqwest in this program; for 0.12, turn on the feature \
            `reqwest-0-12` of reattempt and import `reattempt::reqwest_0_12::RequestBuilderExt`"
)]
#[expect(unnameable_types, reason = "nothing else implements it")]
pub trait BuildRequest: Sealed {
    #[doc(hidden)]
    fn build_request(self) -> reqwest::Result<Request>;
}

impl BuildRequest for RequestBuilder {
    fn build_request(self) -> reqwest::Result<Request> {
        self.build()
    }
}

/// An extension of reqwest's `RequestBuilder` with a method that sends requests through a wrapped client. This trait is
/// sealed.
pub trait ReqwestExt: BuildRequest {
    /// Builds the request and sends it through a clone of `client`, a `reqwest::Client` inside any layers. The client
    /// that created the builder is not used. Pass a client in an `Arc` as `&*client`.
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

impl<R: BuildRequest> ReqwestExt for R {
    fn send_with<S>(self, client: &S) -> impl Future<Output = Result<Response, S::Error>> + use<S, R>
    where
        S: Service<Request, Response = Response, Error: From<reqwest::Error>> + Clone,
    {
        let client = client.clone();
        async move { send(client, self.build_request()?).await }
    }
}

impl Sealed for reqwest::RequestBuilder {}
