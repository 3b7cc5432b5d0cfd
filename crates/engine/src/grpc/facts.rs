//! The facts that layers read from a gRPC request.

use std::borrow::Cow;

use http::{Extensions, HeaderMap, HeaderName, Request};

use super::Grpc;
use super::deadline::GRPC_TIMEOUT;
use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::call::request_view::RequestView;
use crate::error_mode::Answered;
use crate::protocol::{NestedMarker, ReadRequest, RequestProtocol, RequestTerms, RetrySafety, terms_of};

/// The header with the number of previous attempts.
pub const PREVIOUS_ATTEMPTS: HeaderName = HeaderName::from_static("grpc-previous-rpc-attempts");

impl<B> ReadRequest<Request<B>> for Grpc {
    #[inline]
    fn view(request: &Request<B>) -> RequestView<'_> {
        request.into()
    }

    fn extensions_mut(request: &mut Request<B>) -> Option<&mut Extensions> {
        Some(request.extensions_mut())
    }

    fn renew_deadline(&self, request: &mut Request<B>, deadline: Deadline) {
        if request.headers().contains_key(GRPC_TIMEOUT) {
            deadline.write_to(request.headers_mut());
        }
    }
}

impl RequestProtocol for Grpc {
    type Errors = Answered;

    /// Returns `true` if the request sets no terms. The method name that generated clients add to the extensions does
    /// not count.
    #[inline]
    fn has_no_terms(&self, request: RequestView<'_>) -> bool {
        let has_terms = request.extensions().is_some_and(|extensions| {
            !extensions.is_empty()
                && (extensions.get::<CallOptions>().is_some()
                    || extensions.get::<Deadline>().is_some()
                    || extensions.get::<NestedMarker>().is_some())
        });
        let (timeout, previous) = request.headers().map_or((false, false), own_fields);
        !has_terms && !timeout && !previous && self.timeout.is_none()
    }

    #[inline]
    fn options_by_rule(&self, request: RequestView<'_>) -> Option<CallOptions> {
        self.http.options_by_rule(request)
    }

    /// Returns the deadline in the header, because that is the only deadline that servers receive.
    fn existing_deadline(&self, request: RequestView<'_>, _: Option<Deadline>) -> Option<Deadline> {
        request.headers().and_then(Deadline::from_headers)
    }

    /// Returns the earliest of the caller's, the request's and the policy's deadlines.
    // DL-1
    fn terms(&self, request: RequestView<'_>) -> RequestTerms {
        let own = terms_of(self, request);
        let configured = self.timeout.map(Deadline::after);
        RequestTerms {
            deadline: own.deadline.into_iter().chain(configured).min(),
            strip: request.contains(&PREVIOUS_ATTEMPTS),
            ..own
        }
    }

    /// Allows retries of every method, but not repeating it, which only the caller, the settings or the method's
    /// descriptor can allow.
    fn retry_safety(&self, request: RequestView<'_>) -> RetrySafety {
        let described = || self.described.iter().any(|set| set.level(request.path()).is_some());
        RetrySafety { may_retry: true, repeatable: self.repeatable || described(), keyed: false }
    }

    /// Returns `true` for every request, because the caller adds the layer only for safe methods.
    // HG-14
    fn may_hedge(&self, _: RequestView<'_>, _: bool) -> bool {
        true
    }

    fn errors_prove(&self) -> bool {
        true
    }

    #[inline]
    fn destination_of<'a>(&self, request: RequestView<'a>) -> Cow<'a, str> {
        self.http.destination_of(request)
    }
}

/// Returns whether the map contains the timeout header and the header for previous attempts. One pass over all names is
/// cheaper than two look-ups.
#[inline]
fn own_fields(headers: &HeaderMap) -> (bool, bool) {
    let (mut timeout, mut previous) = (false, false);
    for name in headers.keys() {
        timeout |= *name == GRPC_TIMEOUT;
        previous |= *name == PREVIOUS_ATTEMPTS;
    }
    (timeout, previous)
}
