//! tonic's requests: one boxed body for each attempt, because tonic's channel takes that type.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderName, Request};
use reattempt_replay::ReplayBody;
use tonic::body::Body;

use super::Grpc;
use super::deadline::GRPC_TIMEOUT;
use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::protocol::{
    Added, NestedMarker, NextAttempt, Origin, Replay, RequestTerms, RetrySafety, SavedRequest, host,
};

const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

impl Replay<Request<Body>> for Grpc {
    type Attempt = Request<Body>;
    type Saved = SavedRequest<Body>;
    type Rest = Body;

    /// Generated clients put the method among the extensions, which has no effect here.
    #[inline]
    fn has_no_terms(&self, request: &Request<Body>) -> bool {
        let extensions = request.extensions();
        let has_terms = !extensions.is_empty()
            && (extensions.get::<CallOptions>().is_some()
                || extensions.get::<Deadline>().is_some()
                || extensions.get::<NestedMarker>().is_some());
        let (timeout, previous) = own_fields(request.headers());
        !has_terms && !timeout && !previous && self.timeout.is_none()
    }

    /// The deadline is the earliest of the caller's, the request's and the policy's (DL-1).
    fn terms(&self, request: &Request<Body>) -> RequestTerms {
        let own = self.http.terms_of(request);
        let (timeout, strip) = own_fields(request.headers());
        // The server receives only the header of the deadline.
        let existing_deadline =
            timeout.then(|| Deadline::from_headers(request.headers())).flatten();
        let configured = self.timeout.map(Deadline::after);
        let deadline = own.deadline.into_iter().chain(existing_deadline).chain(configured).min();
        RequestTerms { deadline, existing_deadline, strip, ..own }
    }

    /// Only the caller knows the methods that may be repeated.
    fn retry_safety(&self, _: &SavedRequest<Body>) -> RetrySafety {
        RetrySafety { may_retry: true, repeatable: false, keyed: false }
    }

    fn path<'a>(&self, request: &'a Request<Body>) -> &'a str {
        request.uri().path()
    }

    fn target<'a>(&self, request: &'a Request<Body>) -> Cow<'a, str> {
        self.http.destination_of(request.uri(), || host(request.headers()))
    }

    fn pass(&self, mut request: Request<Body>, added: Added<'_>) -> Request<Body> {
        first(request.headers_mut(), added);
        added.to_headers(request.headers_mut());
        added.to_extensions(request.extensions_mut());
        request
    }

    #[inline(always)]
    fn keep(
        &self,
        request: Request<Body>,
        added: Added<'_>,
        kept: &mut Option<Self::Saved>,
    ) -> Request<Body> {
        let (mut head, body) = request.into_parts();
        first(&mut head.headers, added);
        // The body of a generated client encodes its single message when it is read, and does not give its length.
        let limits = self.http.limits_of(&head, &body);
        let saved = added.saved_with(&mut head);
        let body = SavedRequest::keep(saved, ReplayBody::read_ahead(body, &limits), kept);
        Request::from_parts(head, Body::new(body))
    }

    fn again(&self, kept: &mut Option<Self::Saved>, next: NextAttempt) -> Option<Request<Body>> {
        let mut attempt = SavedRequest::again(kept, next)?;
        let headers = attempt.headers_mut();
        // The number of attempts before it. An attempt that was replaced does not count (RPH-1, RPH-2). A caller's map
        // that is full has no room for it.
        if next.number > 1 {
            let _ = headers.try_insert(PREVIOUS_ATTEMPTS, (next.number - 1).into());
        }
        if let Some(deadline) = next.deadline {
            deadline.write_to(headers);
        }
        #[cfg(feature = "opentelemetry")]
        super::metrics::mark(attempt.extensions_mut(), next.kind);
        Some(attempt.map(Body::new))
    }

    fn refresh(&self, attempt: &mut Request<Body>, deadline: Option<Deadline>) {
        if let Some(deadline) = deadline {
            deadline.write_to(attempt.headers_mut());
        }
    }

    fn destination<'a>(&self, kept: &'a Self::Saved) -> Cow<'a, str> {
        kept.destination(&self.http)
    }

    fn split(&self, attempt: Request<Body>) -> (Parts, Body) {
        attempt.into_parts()
    }

    fn join(&self, head: Parts, rest: Body) -> Request<Body> {
        Request::from_parts(head, rest)
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
        // The caller may have set it, but no attempt came before this one (RPH-4).
        headers.remove(PREVIOUS_ATTEMPTS);
    }
}

/// Returns `true` if there is the field of a timeout, and `true` if there is that of previous attempts. One pass over
/// all names costs less than two look-ups.
#[inline]
fn own_fields(headers: &HeaderMap) -> (bool, bool) {
    let (mut timeout, mut previous) = (false, false);
    for name in headers.keys() {
        timeout |= *name == GRPC_TIMEOUT;
        previous |= *name == PREVIOUS_ATTEMPTS;
    }
    (timeout, previous)
}
