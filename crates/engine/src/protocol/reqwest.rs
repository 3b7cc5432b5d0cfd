//! HTTP support for `reqwest::Client`.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use http::request::Parts;
use http::response::Builder;
use http_body::Body as _;
use reattempt_core::{Classification, StopReason};
use reattempt_http::{IDEMPOTENCY_KEY, new_idempotency_key};
use reattempt_replay::{ReplayBody, ReplayCharge, SourceWatch};
use reqwest::{Body, Request, Response, ResponseBuilderExt, Url};

use super::errors::error_text;
use super::{
    Added, ClassifyOutcome, DrainBody, Http, NextAttempt, Origin, OutcomeFacts, Replay, RequestProtocol, Saved,
    errors::is_refused_here, proof,
};
use crate::call::deadline::Deadline;
use crate::call::in_use;
use crate::call::options::CallOptions;
use crate::call::report::Report;
use crate::call::request_view::RequestView;
use crate::call::timed_out::RefusedResponse;

/// The saved form of a `reqwest::Request`.
///
/// An in-memory body stays in the request, so that reqwest itself can resend it on a redirect (307, 308). A stream
/// becomes a replayable body. So does an in-memory body that would exceed the memory limit for all bodies. Such an
/// in-memory body can be sent again only if none of it was read.
pub struct SavedReqwest {
    request: Request,
    body: SavedBody,
}

#[derive(Debug)]
enum SavedBody {
    /// The body, if any, is in the request, with memory reserved for it.
    InRequest(Option<ReplayCharge>),
    Stream(ReplayBody<Body>),
}

impl SavedBody {
    fn lost() -> Self {
        SavedBody::Stream(ReplayBody::not_kept())
    }

    /// Returns the saved body for the attempt after the next one. `self` keeps the body for the next attempt.
    fn kept_on(&mut self) -> Self {
        match self {
            // The next attempt shares the bytes, so it needs no reservation of its own.
            SavedBody::InRequest(charge) => SavedBody::InRequest(charge.take()),
            SavedBody::Stream(body) => SavedBody::Stream(body.try_clone().unwrap_or_else(ReplayBody::not_kept)),
        }
    }
}

/// The output omits the URL and the headers, which may contain credentials.
impl fmt::Debug for SavedReqwest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedReqwest")
            .field("method", self.request.method())
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

impl Saved for SavedReqwest {
    type Body = Body;

    fn view(&self) -> RequestView<'_> {
        RequestView::from(&self.request)
    }

    fn body(&self) -> Option<&ReplayBody<Body>> {
        match &self.body {
            SavedBody::Stream(body) => Some(body),
            SavedBody::InRequest(_) => None,
        }
    }

    fn body_mut(&mut self) -> Option<&mut ReplayBody<Body>> {
        match &mut self.body {
            SavedBody::Stream(body) => Some(body),
            SavedBody::InRequest(_) => None,
        }
    }
}

impl Replay<Request> for Http {
    type Attempt = Request;
    type Saved = SavedReqwest;
    type Rest = Request;

    fn cannot_save(&self, request: &Request) -> Option<StopReason> {
        // The body of a CONNECT request is the data of its tunnel.
        let has_body = || request.body().is_some_and(|body| body.as_bytes() != Some(&[]));
        (request.method() == http::Method::CONNECT && has_body()).then_some(StopReason::Forbidden)
    }

    fn forward(&self, mut request: Request, added: Added<'_>) -> Request {
        self.write_deadline(request.headers_mut(), added.header_deadline());
        request
    }

    fn forward_watched(&self, request: Request, added: Added<'_>, source: &mut Option<SourceWatch>) -> Request {
        let mut request = Replay::<Request>::forward(self, request, added);
        if request.body().is_some_and(|body| body.as_bytes().is_none()) && in_use::GUARDS.is_begun() {
            let body = request.body_mut().take().map(|body| ReplayBody::passthrough(body).watched());
            *source = body.as_ref().and_then(ReplayBody::watch_source);
            *request.body_mut() = body.map(Body::wrap);
        }
        request
    }

    fn save(&self, mut request: Request, added: Added<'_>, saved: &mut Option<SavedReqwest>) -> Request {
        if added.key {
            request.headers_mut().insert(IDEMPOTENCY_KEY, new_idempotency_key());
        }
        self.write_deadline(request.headers_mut(), added.header_deadline());
        let bytes = request.body().map_or(Some(0), |body| body.as_bytes().map(<[u8]>::len));
        let limits = match request.body() {
            Some(body) if bytes != Some(0) => {
                self.replay.for_call(&body.size_hint(), || self.destination_of((&request).into()))
            }
            _ => Cow::Borrowed(&self.replay),
        };
        let charge = match bytes {
            Some(0) => Some(None),
            Some(length) => limits.charge(length).map(Some),
            None => None,
        };
        if let Some(charge) = charge
            && let Some(copy) = request.try_clone()
        {
            *saved = Some(SavedReqwest { request: copy, body: SavedBody::InRequest(charge) });
            return request;
        }
        let source = request.body_mut().take();
        let copy = copy_of_bodiless(&request);
        let (body, saved_body) = match source {
            Some(body) if !self.replay.keeps_nothing() || ReplayBody::is_upload_body(&body) => {
                let first = match bytes {
                    Some(_) => ReplayBody::in_memory(body, &limits),
                    None => ReplayBody::new(body, &limits),
                };
                let kept = SavedBody::Stream(first.try_clone().unwrap_or_else(ReplayBody::not_kept));
                (Some(Body::wrap(first)), kept)
            }
            unkept => (unkept, SavedBody::lost()),
        };
        *request.body_mut() = body;
        *saved = Some(SavedReqwest { request: copy, body: saved_body });
        request
    }

    fn again(&self, saved: SavedReqwest, next: NextAttempt, further: &mut Option<SavedReqwest>) -> Request {
        let SavedReqwest { mut request, mut body } = saved;
        if !next.last || next.needs_head {
            let body = if next.last { SavedBody::lost() } else { body.kept_on() };
            *further = Some(SavedReqwest { request: copy_of_bodiless(&request), body });
        }
        if let SavedBody::Stream(body) = body {
            *request.body_mut() = Some(Body::wrap(body));
        }
        self.write_deadline(request.headers_mut(), next.deadline);
        request
    }

    fn refresh(&self, attempt: &mut Request, deadline: Option<Deadline>) {
        self.write_deadline(attempt.headers_mut(), deadline);
    }

    fn split(&self, attempt: Request) -> (Parts, Request) {
        let (mut head, ()) = http::Request::new(()).into_parts();
        head.method = attempt.method().clone();
        head.headers = attempt.headers().clone();
        head.version = attempt.version();
        if let Ok(uri) = attempt.url().as_str().parse() {
            head.uri = uri;
        }
        (head, attempt)
    }

    fn join(&self, head: Parts, mut rest: Request) -> Request {
        // If the hook did not change the URL, parts that a URI cannot represent are kept, such as the fragment.
        let untouched = rest.url().as_str().parse().is_ok_and(|uri: http::Uri| uri == head.uri);
        if !untouched && let Ok(url) = Url::parse(&head.uri.to_string()) {
            *rest.url_mut() = url;
        }
        *rest.method_mut() = head.method;
        *rest.headers_mut() = head.headers;
        *rest.version_mut() = head.version;
        rest
    }
}

impl Origin<Request> for Http {
    type Request = Request;
}

impl ClassifyOutcome<Response> for Http {
    type Drain = DrainBody<Body>;
    type Answer = Response;

    fn classify_outcome(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
        saved: Option<&impl Saved>,
    ) -> Classification {
        let judged = match outcome {
            Ok(response) => {
                let (status, headers) = (response.status(), response.headers());
                self.classify_response(status, headers, response.extensions(), options, saved)
            }
            Err(error) => self.classify_error(error, options, saved),
        };
        // reqwest follows redirects by default, which neither its errors nor its responses show. A refusal without a
        // reqwest error comes from a layer around reqwest.
        judged.unless_doubted(outcome.map(Response::extensions), |_| {
            let around =
                outcome.err().is_some_and(|error| is_refused_here(error) && !proof::followed_by_client_of(error));
            self.redirects.unwrap_or(!around)
        })
    }

    #[inline]
    fn facts(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> OutcomeFacts {
        OutcomeFacts::of(outcome.map(Response::extensions))
    }

    #[inline]
    fn answer(response: Response, _: bool) -> Response {
        response
    }

    fn code(response: &Response) -> Option<u16> {
        Some(response.status().as_u16())
    }

    fn error_text(outcome: Result<&Response, &(dyn Error + 'static)>) -> Option<Box<str>> {
        error_text(outcome.map(Response::extensions))
    }

    fn drain(&self, response: Response) -> (DrainBody<Body>, Option<RefusedResponse>) {
        DrainBody::new(http::Response::from(response), self.drain_limit)
    }

    fn attach(&self, response: &mut Response, report: Report) {
        response.extensions_mut().insert(report);
    }
}

/// Copies a request that has no body or an in-memory body. No other request reaches this function.
fn copy_of_bodiless(request: &Request) -> Request {
    request.try_clone().unwrap_or_else(|| Request::new(request.method().clone(), request.url().clone()))
}

/// Returns an `http::Response` that converts to a reqwest response with the same URL.
pub fn with_url(response: Response) -> http::Response<Body> {
    let url = response.url().clone();
    let mut response = http::Response::<Body>::from(response);
    if let Ok(with_url) = Builder::new().url(url).body(()) {
        response.extensions_mut().extend(with_url.into_parts().0.extensions);
    }
    response
}
