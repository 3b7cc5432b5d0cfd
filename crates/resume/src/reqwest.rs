//! Resume support for `reqwest::Client`.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use http_body::Body as HttpBody;
use reattempt_engine::wall::with_url;
use reqwest::{Body, Request, Response, Url};
use tokio::time::Instant;
use tower::BoxError;

use super::ResumePoint;
use super::message::{ResumableRequest, ResumableResponse, ResumedAs, Target};

impl ResumableRequest for Request {
    // The request without its body, and the time at which the first request was sent.
    type Head = (Request, Instant);

    fn head(&self) -> Option<Self::Head> {
        let has_body = self.body().is_some_and(|body| body.as_bytes() != Some(&[]));
        let is_plain = ResumePoint::permits(self.method(), self.headers()) && !has_body;
        if !is_plain {
            return None;
        }
        Some((self.try_clone()?, Instant::now()))
    }

    fn time_limit(&self) -> Option<Duration> {
        self.timeout().copied()
    }

    fn path((request, _): &Self::Head) -> Box<str> {
        path_of(request.url())
    }

    fn point((head, _): &Self::Head, status: StatusCode, response: &HeaderMap) -> Option<ResumePoint> {
        ResumePoint::new(head.method(), head.headers(), status, response)
    }

    fn for_rest((head, began): &Self::Head, point: &ResumePoint) -> Self {
        // A request without a body can always be cloned.
        let mut request = head.try_clone().unwrap_or_else(|| Self::new(head.method().clone(), head.url().clone()));
        point.write_to(request.headers_mut());
        // The caller's time limit for the whole download is not restarted.
        if let Some(limit) = head.timeout() {
            *request.timeout_mut() = Some(limit.saturating_sub(began.elapsed()));
        }
        request
    }
}

impl ResumableResponse for Response {
    type Body = Body;

    fn into_message(self) -> http::Response<Body> {
        let url = self.url();
        let target = Target { origin: url.origin().ascii_serialization().into(), path: path_of(url) };
        let mut message = with_url(self);
        message.extensions_mut().insert(target);
        message
    }
}

impl<T: HttpBody<Data = Bytes, Error: Into<BoxError>> + Send + Sync + 'static> ResumedAs<T> for Response {
    type Resumed = Response;

    fn from_message(message: http::Response<T>) -> Response {
        message.map(Body::wrap).into()
    }
}

/// Returns the path and query.
fn path_of(url: &Url) -> Box<str> {
    match url.query() {
        Some(query) => format!("{}?{query}", url.path()).into(),
        None => url.path().into(),
    }
}
