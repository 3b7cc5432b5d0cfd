//! Requests for tonic's channel, which accepts only its own boxed body type, and its responses.

use http::request::Parts;
use http::{Extensions, HeaderMap, Request};
use reattempt_replay::{ReplayBody, ReplayLimits, UploadBody};
use tokio::runtime::Handle;
use tonic::body::Body;

use super::Grpc;
use super::facts::PREVIOUS_ATTEMPTS;
use crate::call::deadline::Deadline;
use crate::call::report::{Report, Reported};
use crate::protocol::attempt::KindWanted;
use crate::protocol::witness::Witness;
use crate::protocol::{Added, NextAttempt, Origin, Replay, SavedRequest};

impl Replay<Request<Body>> for Grpc {
    type Attempt = Request<Body>;
    type Saved = SavedRequest<Body>;
    type Rest = Body;

    fn forward(&self, mut request: Request<Body>, added: Added<'_>) -> Request<Body> {
        first(request.headers_mut(), added);
        added.to_headers(request.headers_mut());
        added.to_extensions(request.extensions_mut());
        request
    }

    #[inline(always)]
    fn save(&self, request: Request<Body>, added: Added<'_>, saved: &mut Option<Self::Saved>) -> Request<Body> {
        let (mut head, mut body) = request.into_parts();
        first(&mut head.headers, added);
        // Inside a fallback, a poll of the caller's body means that the request was sent, so no other body is sent.
        if let Some(upload) = UploadBody::take_from(&mut head.extensions)
            && head.extensions.get::<Witness>().is_none()
        {
            body = Body::new(upload);
        }
        // A generated client's body encodes its single message when it is polled, so its length is unknown until then.
        let limits = self.http.limits_of(&head, &body);
        let saved_head = added.saved_with(&mut head);
        let body = SavedRequest::save(saved_head, Self::first_reader(body, &head.extensions, &limits), saved);
        Request::from_parts(head, Body::new(body))
    }

    fn again(&self, saved: Self::Saved, next: NextAttempt, further: &mut Option<Self::Saved>) -> Request<Body> {
        let mut attempt = saved.again(next, further);
        let headers = attempt.headers_mut();
        // The number of previous attempts without the replaced ones (RPH-1, RPH-2). It is omitted if the caller's
        // header map is full.
        if next.number > 1 {
            let _ = headers.try_insert(PREVIOUS_ATTEMPTS, (next.number - 1).into());
        }
        if let Some(deadline) = next.deadline {
            deadline.write_to(headers);
        }
        if attempt.extensions().get::<KindWanted>().is_some() {
            attempt.extensions_mut().insert(next.kind);
        }
        attempt.map(Body::new)
    }

    fn refresh(&self, attempt: &mut Request<Body>, deadline: Option<Deadline>) {
        if let Some(deadline) = deadline {
            deadline.write_to(attempt.headers_mut());
        }
    }

    fn split(&self, attempt: Request<Body>) -> (Parts, Body) {
        attempt.into_parts()
    }

    fn join(&self, head: Parts, rest: Body) -> Request<Body> {
        Request::from_parts(head, rest)
    }
}

impl Grpc {
    /// Creates the first reader of a request's body. The message of a unary call is read immediately, so that its
    /// readers need no lock and no allocation.
    ///
    /// It is read later if there is no runtime, which the body may need. It is also read later inside a fallback, for
    /// which a poll of the body means that the request was sent.
    #[doc(hidden)]
    #[inline]
    pub fn first_reader(body: Body, extensions: &Extensions, limits: &ReplayLimits) -> ReplayBody<Body> {
        match Handle::try_current() {
            Ok(_) if extensions.get::<Witness>().is_none() => ReplayBody::read_ahead_now(body, limits),
            _ => ReplayBody::read_ahead(body, limits),
        }
    }
}

impl Origin<Request<Body>> for Grpc {
    type Request = Request<Body>;
}

/// Prepares the head of a call before its first attempt.
fn first(headers: &mut HeaderMap, added: Added<'_>) {
    if let Some(deadline) = added.deadline {
        deadline.write_to(headers);
    }
    if added.strip {
        // The caller may have set this header, but there was no attempt before this one (RPH-4).
        headers.remove(PREVIOUS_ATTEMPTS);
    }
}

impl<T> Reported for tonic::Response<T> {
    fn report(&self) -> Option<&Report> {
        self.extensions().get()
    }
}
