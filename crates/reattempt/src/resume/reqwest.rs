//! Downloads through `reqwest::Client`.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body as HttpBody;
use reqwest::{Body, Request, Response};
use tower::BoxError;

use super::ResumePoint;
use super::message::{ResumableRequest, ResumableResponse, ResumedAs, Target, sealed};
use crate::guard::with_url;

impl sealed::Sealed for Request {}
impl sealed::Sealed for Response {}

impl ResumableRequest for Request {
    type Head = Request;

    fn head(&self) -> Option<Request> {
        let has_body = self.body().is_some_and(|body| body.as_bytes() != Some(&[]));
        let is_plain = ResumePoint::permits(self.method(), self.headers()) && !has_body;
        if is_plain { self.try_clone() } else { None }
    }

    fn point(head: &Request, status: StatusCode, response: &HeaderMap) -> Option<ResumePoint> {
        ResumePoint::new(head.method(), head.headers(), status, response)
    }

    fn for_rest(head: &Request, point: &ResumePoint) -> Self {
        // A request without a body can always be cloned.
        let mut request = head.try_clone().unwrap_or_else(|| Self::new(head.method().clone(), head.url().clone()));
        point.write_to(request.headers_mut());
        request
    }
}

impl ResumableResponse for Response {
    type Body = Body;

    fn into_message(self) -> http::Response<Body> {
        let url = self.url();
        let target = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let mut message = with_url(self);
        message.extensions_mut().insert(Target(target.into()));
        message
    }
}

impl<T> ResumedAs<T> for Response
where
    T: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static,
{
    type Resumed = Response;

    fn from_message(message: http::Response<T>) -> Response {
        message.map(Body::wrap).into()
    }
}
