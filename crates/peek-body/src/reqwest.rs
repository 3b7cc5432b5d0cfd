//! Bodies of `reqwest::Client`. Its responses keep their type, their URL and their length.

use http::{HeaderMap, Method, StatusCode};
use http_body::{Body as _, SizeHint};
use reattempt_engine::classify::RequestView;
use reattempt_engine::wall::with_url;
use reqwest::{Body, Error, Request, Response};

use super::PeekedBody;
use super::message::{PeekableRequest, PeekableResponse, sealed};

impl sealed::Sealed for Request {}
impl sealed::Sealed for Response {}

impl PeekableRequest for Request {
    fn method(&self) -> &Method {
        self.method()
    }

    fn view(&self) -> RequestView<'_> {
        self.into()
    }

    fn is_streamed(&self) -> bool {
        self.body().is_some_and(|body| body.as_bytes().is_none() && body.size_hint().exact().is_none())
    }
}

impl PeekableResponse for Response {
    type Body = Body;
    type Error = Error;
    type Peeked = Self;

    fn head(&self) -> (StatusCode, &HeaderMap) {
        (self.status(), self.headers())
    }

    fn length(&self) -> SizeHint {
        self.content_length().map_or_else(SizeHint::default, SizeHint::with_exact)
    }

    fn unread(self) -> Self {
        self
    }

    fn into_message(self) -> http::Response<Body> {
        with_url(self)
    }

    fn from_message(message: http::Response<PeekedBody<Body>>) -> Self {
        message.map(Body::wrap).into()
    }
}
