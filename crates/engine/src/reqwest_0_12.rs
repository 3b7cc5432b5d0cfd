//! reqwest 0.12: its client as a service of `http` requests, and its request builder.
//!
//! The layers take the requests of reqwest 0.13 themselves. For 0.12, put [`Client012`] around the client, so that they
//! take `http` requests. All layers, settings and classifications of HTTP apply.
//!
//! ```no_run
//! use reattempt::RetryLayer;
//! use reattempt::reqwest_0_12::{Client012, RequestBuilderExt};
//! use tower::ServiceBuilder;
//! # use reqwest012 as reqwest;
//!
//! # async fn example() -> Result<(), reqwest::Error> {
//! let http = reqwest::Client::new();
//! let client = ServiceBuilder::new().layer(RetryLayer::http()).service(Client012::new(http.clone()));
//!
//! let response: reqwest::Response = http.get("http://one.example/").send_with(&client).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Without a layer, [`retry`](crate::retry()) repeats a closure that sends a request, and
//! [`http`](crate::operation::Retrying::http) reads its responses.
//!
//! # Differences from reqwest 0.13
//!
//! - [`Report::of`](crate::Report::of) takes no response of `send_with`. Set a
//!   [`ReportSlot`](crate::report::ReportSlot) with [`report_to`](crate::CallOptions::report_to).
//! - The layers see no [`timeout`](reqwest012::RequestBuilder::timeout) of a request. It limits each attempt.
//! - reqwest itself cannot send a body again on a redirect (307, 308), because each body becomes a stream.
//! - reqwest 0.12.23 and later repeats refused HTTP/2 requests below the layer. `retry(reqwest::retry::never())` of its
//!   builder turns that off.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::response::Builder;
use http_body::Body as HttpBody;
use reqwest012::{Body, Client, Error, Request, RequestBuilder, Response, ResponseBuilderExt};
use tower::BoxError;
use tower_http_of_reqwest::follow_redirect::RequestUri;
use tower_service::Service;

use crate::send::send;

/// A client of reqwest 0.12, as a service of `http` requests.
///
/// The body of its responses is reqwest's. The layers assume that the client follows redirects, as it does by default;
/// see [`redirects_below`](crate::Http::redirects_below).
#[derive(Debug, Clone)]
pub struct Client012(Client);

impl Client012 {
    /// Creates a service from a client.
    pub fn new(client: Client) -> Self {
        Self(client)
    }
}

impl<B> Service<http::Request<B>> for Client012
where
    B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
{
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> ResponseFuture {
        let timeout = request.extensions().get::<Timeout>().copied();
        let request = Request::try_from(request.map(Body::wrap));
        let client = self.0.clone();
        ResponseFuture(Box::pin(async move {
            let mut request = request?;
            *request.timeout_mut() = timeout.map(|Timeout(timeout)| timeout);
            client.execute(request).await.map(marked)
        }))
    }
}

/// The timeout of a request, in its extensions.
#[derive(Clone, Copy)]
struct Timeout(Duration);

/// The future of a [`Client012`].
///
/// # Cancel safety
/// Dropping the future cancels the request.
pub struct ResponseFuture(Pin<Box<dyn Future<Output = Result<http::Response<Body>, Error>> + Send>>);

impl Future for ResponseFuture {
    type Output = Result<http::Response<Body>, Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.as_mut().poll(cx)
    }
}

impl fmt::Debug for ResponseFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

/// Returns an `http` response with its URL, and with the mark of a client that follows redirects. Not every reqwest
/// 0.12 has that mark, and without it a POST could be repeated after the refusal of a later hop.
fn marked(response: Response) -> http::Response<Body> {
    let url = response.url().clone();
    let uri = url.as_str().parse().unwrap_or_default();
    let mut response = http::Response::<Body>::from(response);
    response.extensions_mut().insert(RequestUri(uri));
    if let Ok(with_url) = Builder::new().url(url).body(()) {
        response.extensions_mut().extend(with_url.into_parts().0.extensions);
    }
    response
}

mod sealed {
    /// Only the builder of reqwest 0.12 implements it.
    #[expect(unnameable_types, reason = "nothing else implements it")]
    pub trait Sealed {}

    impl Sealed for reqwest012::RequestBuilder {}
}

/// An extension of the request builder of reqwest 0.12 with a method that sends requests through a wrapped client. This
/// trait is sealed.
pub trait RequestBuilderExt: sealed::Sealed {
    /// Builds the request and sends it through a clone of `client`, a [`Client012`] inside any layers. The client that
    /// created the builder is not used. Pass a client in an `Arc` as `&*client`.
    ///
    /// # Errors
    /// Returns the builder's error (for example, for a bad URL) or the call's error.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call.
    fn send_with<S, B>(self, client: &S) -> impl Future<Output = Result<Response, S::Error>> + use<S, B, Self>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>, Error: From<Error>> + Clone,
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static;
}

impl RequestBuilderExt for RequestBuilder {
    fn send_with<S, B>(self, client: &S) -> impl Future<Output = Result<Response, S::Error>> + use<S, B>
    where
        S: Service<http::Request<Body>, Response = http::Response<B>, Error: From<Error>> + Clone,
        B: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
    {
        let client = client.clone();
        async move {
            let request = self.build()?;
            let timeout = request.timeout().copied().map(Timeout);
            let mut request = http::Request::try_from(request)?;
            timeout.map(|timeout| request.extensions_mut().insert(timeout));
            Ok(Response::from(send(client, request).await?.map(Body::wrap)))
        }
    }
}
