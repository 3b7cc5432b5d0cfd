//! The sources of fallback responses: a function that takes the failed outcome, or another service.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use reattempt_engine::protocol::Protocol;
use reattempt_engine::wall::{attend, send};
use reattempt_engine::{Deadline, Http};
use tower::BoxError;
use tower_service::Service;

use super::Failed;

/// A source of fallback responses: a function that takes the [`Failed`] outcome, or a [`Backup`]. This trait is sealed.
pub trait Source<P, Request, R>: sealed::Sealed {
    /// The part of a request that is saved until the call ends.
    type Saved;

    /// `true` if requests may be sent to another server.
    #[doc(hidden)]
    const SENDS: bool;

    /// Returns the request to send, and the part that the fallback needs.
    #[doc(hidden)]
    fn save_part(&self, protocol: &P, request: Request) -> (Request, Self::Saved);

    /// Returns the replacement. `sendable` is `true` if the request may be sent to another server.
    #[doc(hidden)]
    fn replace(
        &self,
        saved: Self::Saved,
        failed: &Failed,
        sendable: bool,
        deadline: Option<Deadline>,
    ) -> Replacement<R>;
}

mod sealed {
    #[expect(unnameable_types, reason = "no other crate implements `Source`")]
    pub trait Sealed {}
}

/// The replacement of a failed response.
pub enum Replacement<R> {
    /// No replacement: the call returns its original outcome.
    None,
    /// A response in memory.
    Made(Response<Bytes>),
    /// The future of the request to another service.
    Sent(Pin<Box<dyn Future<Output = Result<R, BoxError>> + Send>>),
}

impl<R> fmt::Debug for Replacement<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Made(_) => "Made",
            Self::Sent(_) => "Sent",
        })
    }
}

impl<F: Fn(&Failed) -> Option<Response<Bytes>>> sealed::Sealed for F {}

impl<F: Fn(&Failed) -> Option<Response<Bytes>>, P, Request, R> Source<P, Request, R> for F {
    type Saved = ();

    const SENDS: bool = false;

    fn save_part(&self, _: &P, request: Request) -> (Request, ()) {
        (request, ())
    }

    fn replace(&self, (): (), failed: &Failed, _: bool, _: Option<Deadline>) -> Replacement<R> {
        self(failed).map_or(Replacement::None, Replacement::Made)
    }
}

/// Another service as the fallback, with the same request and response types.
///
/// Each request is saved before it is sent. A request that must not be processed twice is sent to the backup only if
/// there is proof that the server has not processed it. An idempotency key does not suffice, because the backup may not
/// know the key. Once the backup is called, the call's outcome is the backup's, even if it fails
/// ([`BackupFailed`](super::BackupFailed)). A request that cannot be saved, such as a reqwest request with a stream
/// body, is never sent to the backup. Nothing is sent to the backup after the call's deadline.
///
/// The backup gets all headers of the request, including its `Authorization` and `Cookie`. If it belongs to somebody
/// else, use [`without_credentials`](Self::without_credentials).
#[derive(Debug, Clone)]
pub struct Backup<S> {
    service: S,
    strips: bool,
}

impl<S> Backup<S> {
    /// Creates a fallback that sends requests to `service`.
    pub fn new(service: S) -> Self {
        Self { service, strips: false }
    }

    /// Removes `Authorization`, `Cookie`, `Proxy-Authorization`, and every header whose value is
    /// [sensitive](http::HeaderValue::is_sensitive), from the requests to the backup. Credentials for the backup are
    /// added by its own service.
    ///
    /// ```
    /// use http::{HeaderValue, Request, Response, header::AUTHORIZATION};
    /// use reattempt::Http;
    /// use reattempt::fallback::{Backup, FallbackLayer};
    /// use tower::{BoxError, Layer, ServiceExt, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), BoxError> {
    /// # type Body = http_body_util::Full<bytes::Bytes>;
    /// # let http = service_fn(async |_: Request<Body>| Response::builder().status(503).body(Body::default()));
    /// # let mirror = service_fn(async |request: Request<Body>| {
    /// #     assert!(!request.headers().contains_key(AUTHORIZATION));
    /// #     Response::builder().body(Body::default())
    /// # });
    /// let client = FallbackLayer::with(Http::new(), Backup::new(mirror).without_credentials()).layer(http);
    /// let request = Request::get("http://one.example").header(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
    /// let response = client.oneshot(request.body(Body::default())?).await?;
    /// # assert_eq!(response.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn without_credentials(mut self) -> Self {
        self.strips = true;
        self
    }
}

/// Removes the headers that show who the caller is.
fn strip(headers: &mut HeaderMap) {
    let is_secret = |(name, value): (&HeaderName, &HeaderValue)| {
        let secret = value.is_sensitive() || [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name);
        secret.then(|| name.clone())
    };
    let secret: Vec<_> = headers.iter().filter_map(is_secret).collect();
    for name in secret {
        headers.remove(name);
    }
}

impl<S> sealed::Sealed for Backup<S> {}

/// A protocol that can save a request of type `Request` for a [`Backup`]. This trait is sealed.
///
/// HTTP clones an `http::Request<B>` where `B: Clone`, and a reqwest request unless its body is a stream. A protocol
/// whose bodies are not `Clone` saves their data as they are sent.
#[diagnostic::on_unimplemented(
    message = "this `FallbackLayer` cannot save a request of type `{Request}` for a backup",
    note = "over HTTP it must be an `http::Request<B>` where `B: Clone`, or that of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait SaveRequest<Request>: Protocol {
    /// The saved form of a request.
    type Saved;

    /// Returns the request to send, and its saved form if it can be saved.
    #[doc(hidden)]
    fn save_copy(&self, request: Request) -> (Request, Option<Self::Saved>);

    /// Returns the request for the backup, or `None` if its body was not saved completely. If the protocol sends
    /// deadlines, its deadline field contains the time left.
    #[doc(hidden)]
    fn take_copy(saved: Self::Saved, deadline: Option<Deadline>) -> Option<Request>;

    /// Returns the headers of a request.
    #[doc(hidden)]
    fn headers_of(request: &mut Request) -> &mut HeaderMap;
}

impl<B: Clone> SaveRequest<http::Request<B>> for Http {
    type Saved = http::Request<B>;

    fn save_copy(&self, request: http::Request<B>) -> (http::Request<B>, Option<Self::Saved>) {
        let saved = request.clone();
        attend(request.extensions(), 1, false);
        (request, Some(saved))
    }

    fn take_copy(saved: Self::Saved, _: Option<Deadline>) -> Option<http::Request<B>> {
        Some(saved)
    }

    fn headers_of(request: &mut http::Request<B>) -> &mut HeaderMap {
        request.headers_mut()
    }
}

impl<S, P, Request, R> Source<P, Request, R> for Backup<S>
where
    P: SaveRequest<Request>,
    S: Service<Request, Response = R, Error: Into<BoxError>, Future: Send> + Clone + Send + 'static,
    Request: Send + 'static,
{
    type Saved = Option<P::Saved>;

    const SENDS: bool = true;

    fn save_part(&self, protocol: &P, request: Request) -> (Request, Option<P::Saved>) {
        protocol.save_copy(request)
    }

    fn replace(
        &self,
        saved: Option<P::Saved>,
        _: &Failed,
        sendable: bool,
        deadline: Option<Deadline>,
    ) -> Replacement<R> {
        let in_time = deadline.is_none_or(|deadline| !deadline.remaining().is_zero());
        let again = saved.filter(|_| sendable && in_time).and_then(|saved| P::take_copy(saved, deadline));
        let Some(mut request) = again else { return Replacement::None };
        if self.strips {
            strip(P::headers_of(&mut request));
        }
        let call = send(self.service.clone(), request);
        Replacement::Sent(Box::pin(async { call.await.map_err(Into::into) }))
    }
}
