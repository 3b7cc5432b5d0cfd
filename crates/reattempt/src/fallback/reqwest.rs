//! Fallbacks around `reqwest::Client`.

use bytes::Bytes;
use http::response::Parts;
use reattempt_http::is_repeatable;
use reqwest::{Body, Request, Response};

use super::{KeepRequest, Replaceable};
use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::guard::with_url;
use crate::protocol::Http;
use crate::protocol::witness::Testimony;

impl Replaceable<Request, Response> for Http {
    type Body = Body;
    type Replaced = Response;

    fn is_repeatable(&self, request: &Request, options: Option<&CallOptions>) -> bool {
        let permitted = options.and_then(CallOptions::get_repeatable);
        permitted.unwrap_or_else(|| request.method().is_idempotent())
    }

    fn errors_prove(&self) -> bool {
        self.redirects == Some(false)
    }

    /// A request of reqwest carries no witness. A retry layer below may have sent it before, because of a key that it
    /// has generated, for example. So there is no proof, unless the user states that redirects are off.
    fn call_witness(&self, request: &mut Request) -> Option<Testimony> {
        let proves = self.redirects == Some(false)
            && !self.generate_keys
            && !is_repeatable(request.method(), request.headers());
        (!proves).then(Testimony::void)
    }

    fn split(response: Response) -> (Parts, Body) {
        with_url(response).into_parts()
    }

    fn sent(head: Parts, body: Body) -> Response {
        http::Response::from_parts(head, body).into()
    }

    fn made(head: Parts, data: Bytes) -> Response {
        http::Response::from_parts(head, data).into()
    }
}

impl KeepRequest<Request> for Http {
    type Kept = Request;

    fn keep(&self, request: Request) -> (Request, Option<Request>) {
        let kept = request.try_clone();
        (request, kept)
    }

    fn again(kept: Request, _: Option<Deadline>) -> Option<Request> {
        Some(kept)
    }
}
