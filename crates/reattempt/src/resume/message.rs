//! The requests and responses that a resume layer can handle.

use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use tower::BoxError;

use super::ResumePoint;
use crate::call::options::CallOptions;
use crate::protocol::{Http, ReadRequest, RequestProtocol};

pub(super) mod sealed {
    #[expect(unnameable_types, reason = "no other crate implements these traits")]
    pub trait Sealed {}
}

/// A request whose response body can be resumed. Sealed.
#[diagnostic::on_unimplemented(
    message = "a resume layer cannot repeat a request of type `{Self}`",
    note = "it repeats `http::Request<B>` where `B: http_body::Body + Default`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt"
)]
pub trait ResumableRequest: sealed::Sealed + Sized {
    /// The part of the request that is kept while the response body is read.
    type Head;

    /// Returns the head of a request; `None` if its response cannot be resumed.
    #[doc(hidden)]
    fn head(&self) -> Option<Self::Head>;

    /// Returns the point at the start of the response body; `None` if the body cannot be resumed.
    #[doc(hidden)]
    fn point(head: &Self::Head, status: StatusCode, response: &HeaderMap) -> Option<ResumePoint>;

    /// Creates the request for the rest.
    #[doc(hidden)]
    fn for_rest(head: &Self::Head, point: &ResumePoint) -> Self;
}

/// A response with a body that can be resumed. Sealed.
pub trait ResumableResponse: sealed::Sealed {
    /// The body.
    type Body: Body<Error: Into<BoxError>>;

    /// Converts the response to a message. Its extensions contain the [`Target`], if it is known.
    #[doc(hidden)]
    fn into_message(self) -> Response<Self::Body>;
}

/// A response type that can have a body of type `T` in place of its own. Sealed.
pub trait ResumedAs<T>: ResumableResponse {
    /// The response type with that body.
    type Resumed;

    /// Converts a message to that response.
    #[doc(hidden)]
    fn from_message(message: Response<T>) -> Self::Resumed;
}

/// The path and query of the request that was responded to, after any redirects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target(pub(super) Box<str>);

impl<B> sealed::Sealed for Request<B> {}
impl<B> sealed::Sealed for Response<B> {}

impl<B: Body + Default> ResumableRequest for Request<B> {
    type Head = Parts;

    fn head(&self) -> Option<Parts> {
        let is_plain = ResumePoint::permits(self.method(), self.headers()) && self.body().is_end_stream();
        is_plain.then(|| {
            let mut head = Request::new(());
            *head.method_mut() = self.method().clone();
            *head.uri_mut() = self.uri().clone();
            *head.version_mut() = self.version();
            *head.headers_mut() = self.headers().clone();
            *head.extensions_mut() = self.extensions().clone();
            head.into_parts().0
        })
    }

    fn point(head: &Parts, status: StatusCode, response: &HeaderMap) -> Option<ResumePoint> {
        ResumePoint::new(&head.method, &head.headers, status, response)
    }

    fn for_rest(head: &Parts, point: &ResumePoint) -> Self {
        let mut head = head.clone();
        point.write_to(&mut head.headers);
        // Each resume is a decision of this layer, so a retry layer below must not multiply it (trap 28).
        let options = head.extensions.remove::<CallOptions>().unwrap_or_default();
        head.extensions.insert(options.never_retry());
        Self::from_parts(head, B::default())
    }
}

impl<B: Body<Error: Into<BoxError>>> ResumableResponse for Response<B> {
    type Body = B;

    fn into_message(mut self) -> Self {
        #[cfg(feature = "tower-http")]
        if let Some(uri) = self.extensions().get::<tower_http::follow_redirect::RequestUri>() {
            let target = Target(uri.0.path_and_query().map_or("", |target| target.as_str()).into());
            self.extensions_mut().insert(target);
        }
        #[cfg(not(feature = "tower-http"))]
        let _ = &mut self;
        self
    }
}

impl<B: Body<Error: Into<BoxError>>, T> ResumedAs<T> for Response<B> {
    type Resumed = Response<T>;

    fn from_message(message: Response<T>) -> Response<T> {
        message
    }
}

/// Returns the destination of a request, which is the key of the budget.
pub(super) fn destination<Req>(protocol: &Http, request: &Req) -> Box<str>
where
    Http: ReadRequest<Req>,
{
    protocol.destination_of(<Http as ReadRequest<Req>>::view(request)).into()
}
