//! Fallback support for `reqwest::Client`.

use bytes::Bytes;
use http::HeaderMap;
use http::response::Parts;
use reattempt_engine::wall::with_url;
use reattempt_engine::{Deadline, Http};
use reqwest::{Body, Request, Response};

use super::{Replaceable, SaveRequest};

impl Replaceable<Response> for Http {
    type Body = Body;
    type Replaced = Response;

    fn split(response: Response) -> (Parts, Body) {
        with_url(response).into_parts()
    }

    fn from_service(head: Parts, body: Body) -> Response {
        http::Response::from_parts(head, body).into()
    }

    fn from_memory(head: Parts, data: Bytes) -> Response {
        http::Response::from_parts(head, data).into()
    }
}

impl SaveRequest<Request> for Http {
    type Saved = Request;

    fn save_copy(&self, request: Request) -> (Request, Option<Request>) {
        let saved = request.try_clone();
        (request, saved)
    }

    fn take_copy(saved: Request, _: Option<Deadline>) -> Option<Request> {
        Some(saved)
    }

    fn headers_of(request: &mut Request) -> &mut HeaderMap {
        request.headers_mut()
    }
}
