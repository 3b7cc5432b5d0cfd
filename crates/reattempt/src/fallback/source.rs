//! The sources of responses: a function of the failure, or another service.

use std::fmt;
use std::pin::Pin;

use bytes::Bytes;
use http::Response;
use tower::BoxError;
use tower_service::Service;

use super::Failed;
use crate::send::send;

/// A source of responses in place of failed ones: a function of the [`Failed`] outcome, or a [`Backup`]. Sealed.
pub trait Source<Request, R>: sealed::Sealed {
    /// The part of a request that is kept until its call ends.
    type Kept;

    /// Returns the part of a request that a replacement needs.
    #[doc(hidden)]
    fn keep(&self, request: &Request) -> Self::Kept;

    /// Returns the replacement. `sendable` is `true` if the request may be sent to another server.
    #[doc(hidden)]
    fn replace(&self, kept: Self::Kept, failed: &Failed, sendable: bool) -> Replacement<R>;
}

mod sealed {
    #[expect(unnameable_types, reason = "no other crate implements `Source`")]
    pub trait Sealed {}

    #[expect(unnameable_types, reason = "no other crate implements `CopyRequest`")]
    pub trait SealedRequest {}
}

/// The replacement of a failed response.
pub enum Replacement<R> {
    /// There is none: the caller gets the call's own outcome.
    None,
    /// A response in memory.
    Made(Response<Bytes>),
    /// The request was sent to another service, which may return a response.
    Sent(Pin<Box<dyn Future<Output = Option<R>> + Send>>),
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

impl<F, Request, R> Source<Request, R> for F
where
    F: Fn(&Failed) -> Option<Response<Bytes>>,
{
    type Kept = ();

    fn keep(&self, _: &Request) {}

    fn replace(&self, (): (), failed: &Failed, _: bool) -> Replacement<R> {
        self(failed).map_or(Replacement::None, Replacement::Made)
    }
}

/// Another service as the fallback, with the same types of request and response.
///
/// Each request is copied before it is sent. A request that must not be processed twice is sent here only if the server
/// has certainly not processed it. A request that cannot be copied, such as reqwest's with a stream as its body, has no
/// backup.
#[derive(Debug, Clone)]
pub struct Backup<S>(S);

impl<S> Backup<S> {
    /// Uses `service` as the fallback.
    pub fn new(service: S) -> Self {
        Self(service)
    }
}

impl<S> sealed::Sealed for Backup<S> {}

/// A request that a [`Backup`] can copy: one of the `http` crate with a body that is `Clone`, or reqwest's. Sealed.
pub trait CopyRequest: sealed::SealedRequest + Sized {
    /// Returns a copy, if the body has one.
    #[doc(hidden)]
    fn copy(&self) -> Option<Self>;
}

impl<B: Clone> sealed::SealedRequest for http::Request<B> {}

impl<B: Clone> CopyRequest for http::Request<B> {
    fn copy(&self) -> Option<Self> {
        Some(self.clone())
    }
}

#[cfg(feature = "reqwest")]
impl sealed::SealedRequest for reqwest::Request {}

#[cfg(feature = "reqwest")]
impl CopyRequest for reqwest::Request {
    fn copy(&self) -> Option<Self> {
        self.try_clone()
    }
}

impl<S, Request, R> Source<Request, R> for Backup<S>
where
    S: Service<Request, Response = R> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send,
    Request: CopyRequest + Send + 'static,
{
    type Kept = Option<Request>;

    fn keep(&self, request: &Request) -> Option<Request> {
        request.copy()
    }

    fn replace(&self, kept: Option<Request>, _: &Failed, sendable: bool) -> Replacement<R> {
        let Some(request) = kept.filter(|_| sendable) else { return Replacement::None };
        let call = send(self.0.clone(), request);
        Replacement::Sent(Box::pin(async { call.await.ok() }))
    }
}
