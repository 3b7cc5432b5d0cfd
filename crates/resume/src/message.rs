//! The request and response types that a resume layer supports.

use std::time::Duration;

use http::request::Parts;
use http::{Extensions, HeaderMap, Request, Response, StatusCode, Uri};
use http_body::Body;
use reattempt_engine::protocol::{ReadRequest, RequestProtocol};
use reattempt_engine::{CallOptions, Http};
use tower::BoxError;

use super::ResumePoint;

mod sealed {
    /// Only the requests and responses of this crate implement it.
    #[expect(unnameable_types, reason = "nothing else implements it")]
    pub trait Sealed {}
    impl<B> Sealed for http::Request<B> {}
    impl<B> Sealed for http::Response<B> {}
    #[cfg(feature = "reqwest")]
    impl Sealed for reqwest::Request {}
    #[cfg(feature = "reqwest")]
    impl Sealed for reqwest::Response {}
}

/// A request whose response body can be resumed. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a resume layer cannot repeat a request of type `{Self}`",
    note = "it repeats `http::Request<B>` where `B: http_body::Body + Default`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait ResumableRequest: sealed::Sealed + Sized {
    /// The part of the request that is saved while the response body is read.
    type Head;

    /// Returns the head of a request, or `None` if its response cannot be resumed.
    #[doc(hidden)]
    fn head(&self) -> Option<Self::Head>;

    /// Returns the inner client's time limit for the request and its whole response body, if any.
    #[doc(hidden)]
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// Returns the original path and query.
    #[doc(hidden)]
    fn path(head: &Self::Head) -> Box<str>;

    /// Returns the state at the start of the response body, or `None` if the body cannot be resumed.
    #[doc(hidden)]
    fn point(head: &Self::Head, status: StatusCode, response: &HeaderMap) -> Option<ResumePoint>;

    /// Creates the request for the rest of the body.
    #[doc(hidden)]
    fn for_rest(head: &Self::Head, point: &ResumePoint) -> Self;
}

/// A response with a body that can be resumed. This trait is sealed.
pub trait ResumableResponse: sealed::Sealed {
    /// The response body.
    type Body: Body<Error: Into<BoxError>>;

    /// Converts the response to an `http::Response`. Its extensions contain the [`Target`], if known.
    #[doc(hidden)]
    fn into_message(self) -> Response<Self::Body>;
}

/// A response type whose body can be replaced with one of type `T`. This trait is sealed.
pub trait ResumedAs<T>: ResumableResponse {
    /// The response type with the new body.
    type Resumed;

    /// Converts an `http::Response` to the new response type.
    #[doc(hidden)]
    fn from_message(message: Response<T>) -> Self::Resumed;
}

/// The final address of a request, after any redirects.
#[derive(Clone)]
pub(super) struct Target {
    /// The scheme and the authority.
    pub(super) origin: Box<str>,
    /// The path and query.
    pub(super) path: Box<str>,
}

impl Target {
    fn of(uri: &Uri) -> Self {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        Self { origin: format!("{}://{authority}", uri.scheme_str().unwrap_or_default()).into(), path: path_of(uri) }
    }
}

/// Returns the path and query.
pub(super) fn path_of(uri: &Uri) -> Box<str> {
    uri.path_and_query().map_or("", |path| path.as_str()).into()
}

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

    fn path(head: &Parts) -> Box<str> {
        path_of(&head.uri)
    }

    fn point(head: &Parts, status: StatusCode, response: &HeaderMap) -> Option<ResumePoint> {
        ResumePoint::new(&head.method, &head.headers, status, response)
    }

    fn for_rest(head: &Parts, point: &ResumePoint) -> Self {
        let mut head = head.clone();
        point.write_to(&mut head.headers);
        // This layer decides on every resume, so an inner retry layer must not multiply them (trap 28).
        let options = head.extensions.remove::<CallOptions>().unwrap_or_default();
        // Only this layer's report goes into the caller's slot.
        head.extensions.insert(options.never_retry().without_report());
        Self::from_parts(head, B::default())
    }
}

impl<B: Body<Error: Into<BoxError>>> ResumableResponse for Response<B> {
    type Body = B;

    fn into_message(mut self) -> Self {
        // A reqwest response already has its own URI.
        if self.extensions().get::<Target>().is_none()
            && let Some(target) = requested_uri(self.extensions()).map(Target::of)
        {
            self.extensions_mut().insert(target);
        }
        self
    }
}

impl<B: Body<Error: Into<BoxError>>, T> ResumedAs<T> for Response<B> {
    type Resumed = Response<T>;

    fn from_message(message: Response<T>) -> Response<T> {
        message
    }
}

/// Returns the URI that tower-http's `FollowRedirect` adds to a response. reqwest uses it too.
fn requested_uri(extensions: &Extensions) -> Option<&Uri> {
    #[cfg(feature = "tower-http")]
    if let Some(uri) = extensions.get::<tower_http::follow_redirect::RequestUri>() {
        return Some(&uri.0);
    }
    #[cfg(feature = "reqwest")]
    if let Some(uri) = extensions.get::<tower_http_of_reqwest::follow_redirect::RequestUri>() {
        return Some(&uri.0);
    }
    let _ = extensions;
    None
}

/// Returns the destination of a request, which is its key in the budget.
pub(super) fn destination<Req>(protocol: &Http, request: &Req) -> Box<str>
where
    Http: ReadRequest<Req>,
{
    protocol.destination_of(<Http as ReadRequest<Req>>::view(request)).into()
}
