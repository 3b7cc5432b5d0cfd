//! The request and response types that the layer supports.

use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, SizeHint};
use reattempt_engine::classify::RequestView;

use super::PeekedBody;

pub(crate) mod sealed {
    /// Only the requests and responses of this crate implement it.
    #[expect(unnameable_types, reason = "nothing else implements it")]
    pub trait Sealed {}
    impl<B> Sealed for http::Request<B> {}
    impl<B> Sealed for http::Response<B> {}
}

/// A request whose response body can be read ahead. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a `PeekBodyLayer` cannot read the responses to a request of type `{Self}`",
    note = "it supports `http::Request<B>` where `B: http_body::Body`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait PeekableRequest: sealed::Sealed {
    #[doc(hidden)]
    fn method(&self) -> &Method;

    #[doc(hidden)]
    fn view(&self) -> RequestView<'_>;

    /// Returns `true` if the caller may still be sending the request body when the response arrives.
    #[doc(hidden)]
    fn is_streamed(&self) -> bool;
}

impl<B: Body> PeekableRequest for Request<B> {
    fn method(&self) -> &Method {
        self.method()
    }

    fn view(&self) -> RequestView<'_> {
        self.into()
    }

    fn is_streamed(&self) -> bool {
        !self.body().is_end_stream() && self.body().size_hint().exact().is_none()
    }
}

/// A response whose body can be read ahead. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "a `PeekBodyLayer` cannot read a response of type `{Self}`",
    note = "it reads `http::Response<B>` where `B: http_body::Body + Unpin`, and `reqwest::Response` of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client",
    note = "a body that is not `Unpin`, such as tower-http's `TimeoutBody`, must be boxed below the layer: `.map_response(|response| response.map(BodyExt::boxed_unsync))`"
)]
pub trait PeekableResponse: sealed::Sealed + Sized {
    /// The response body.
    type Body: Body<Error = Self::Error> + Unpin;
    /// The error of the body.
    type Error: 'static;
    /// The response of the layer.
    type Peeked;

    #[doc(hidden)]
    fn head(&self) -> (StatusCode, &HeaderMap);

    #[doc(hidden)]
    fn length(&self) -> SizeHint;

    /// Returns the response without reading it.
    #[doc(hidden)]
    fn unread(self) -> Self::Peeked;

    #[doc(hidden)]
    fn into_message(self) -> Response<Self::Body>;

    #[doc(hidden)]
    fn from_message(message: Response<PeekedBody<Self::Body>>) -> Self::Peeked;
}

impl<B: Body<Error: 'static> + Unpin> PeekableResponse for Response<B> {
    type Body = B;
    type Error = B::Error;
    type Peeked = Response<PeekedBody<B>>;

    fn head(&self) -> (StatusCode, &HeaderMap) {
        (self.status(), self.headers())
    }

    fn length(&self) -> SizeHint {
        match self.body().is_end_stream() {
            true => SizeHint::with_exact(0),
            false => self.body().size_hint(),
        }
    }

    #[inline]
    fn unread(self) -> Self::Peeked {
        self.map(PeekedBody::unread)
    }

    #[inline]
    fn into_message(self) -> Self {
        self
    }

    #[inline]
    fn from_message(message: Response<PeekedBody<B>>) -> Self::Peeked {
        message
    }
}
