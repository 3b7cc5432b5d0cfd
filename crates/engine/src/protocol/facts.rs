//! The facts about a request that layers need, each computed in one place from a view of its head.

use std::borrow::Cow;

use http::header::UPGRADE;
use http::{Extensions, Method, Request};
use reattempt_control::bounded_name;

use super::destination::default_destination;
use super::settings::DestinationRule;
use super::{CloneRequest, Http, Protocol, RequestTerms, RetrySafety};
use crate::call::attempt_terms::AttemptTerms;
use crate::call::deadline::{Deadline, earlier};
use crate::call::frame::Frame;
use crate::call::options::CallOptions;
use crate::call::request_view::RequestView;
use crate::error_mode::BoxedError;

/// The maximum number of names in a `HeaderMap`.
const MOST_HEADERS: usize = 24_576;

/// A protocol for requests, which reads all facts from a view of the request's head. This trait is sealed.
///
/// The default methods are for request types about which nothing is known.
#[expect(unused_variables, reason = "a default ignores its arguments")]
pub trait RequestProtocol: Protocol {
    /// The [error mode](crate::error::ErrorMode) of a guarded client, which can express a refusal.
    type Errors;

    /// Returns `true` if a new request contains no options from its caller.
    #[doc(hidden)]
    #[inline]
    fn has_no_terms(&self, request: RequestView<'_>) -> bool {
        true
    }

    /// Returns `true` if the options of a new request only forbid retries.
    #[doc(hidden)]
    fn only_forbids(&self, options: &CallOptions) -> bool {
        false
    }

    /// Returns the options that the protocol's rules set for a request.
    #[doc(hidden)]
    #[inline]
    fn options_by_rule(&self, request: RequestView<'_>) -> Option<CallOptions> {
        None
    }

    /// Returns the deadline that a new request already sends to the server. `carried` is the deadline in its
    /// extensions.
    #[doc(hidden)]
    #[inline]
    fn existing_deadline(&self, request: RequestView<'_>, carried: Option<Deadline>) -> Option<Deadline> {
        carried
    }

    /// Returns the terms of a new call.
    #[doc(hidden)]
    fn terms(&self, request: RequestView<'_>) -> RequestTerms {
        terms_of(self, request)
    }

    /// Returns `true` if a new request needs an idempotency key before it is saved.
    #[doc(hidden)]
    fn needs_key(&self, request: RequestView<'_>) -> bool {
        false
    }

    /// Returns whether a request may be retried, and whether it may be processed twice.
    #[doc(hidden)]
    fn retry_safety(&self, request: RequestView<'_>) -> RetrySafety;

    /// Returns `true` if a request may be hedged. With `idempotent`, an idempotent method suffices.
    #[doc(hidden)]
    fn may_hedge(&self, request: RequestView<'_>, idempotent: bool) -> bool {
        false
    }

    /// Returns `true` if a request asks its server to switch the connection to another protocol. Such a request may be
    /// retried, but two of them at once would open two connections.
    #[doc(hidden)]
    fn is_handshake(&self, request: RequestView<'_>) -> bool {
        false
    }

    /// Returns `true` if an error can prove that a request was not processed.
    #[doc(hidden)]
    fn errors_prove(&self) -> bool {
        false
    }

    /// Returns `true` if the settings state that no inner service sends a request twice.
    #[doc(hidden)]
    fn sends_once(&self, request: RequestView<'_>) -> bool {
        false
    }

    /// Returns the destination of a request, which is its key in budgets and guards.
    #[doc(hidden)]
    fn destination_of<'a>(&self, request: RequestView<'a>) -> Cow<'a, str> {
        "".into()
    }
}

/// Returns the terms that the request itself contains. Its deadline may also come from an outer layer.
pub(crate) fn terms_of<P: RequestProtocol + ?Sized>(protocol: &P, request: RequestView<'_>) -> RequestTerms {
    let carried = request.extension().copied();
    let existing_deadline = protocol.existing_deadline(request, carried);
    RequestTerms {
        options: request.extension().cloned(),
        of_rule: protocol.options_by_rule(request),
        deadline: earlier(earlier(carried, existing_deadline), Frame::deadline().map(Deadline::at)),
        existing_deadline,
        outer: request.extension().cloned(),
        strip: false,
    }
}

/// Returns an attempt's deadline and options, for layers that send no further attempt. The options are boxed, because
/// few calls have any, and every future would otherwise move them.
#[inline]
pub fn attempt_terms<P: RequestProtocol>(
    protocol: &P,
    request: RequestView<'_>,
) -> (Option<Deadline>, Option<Box<AttemptTerms>>) {
    let (own, terms) = match protocol.is_plain() && protocol.has_no_terms(request) {
        true => (None, None),
        false => attempt_terms_of(protocol, request),
    };
    (earlier(own, Frame::deadline().map(Deadline::at)), terms)
}

#[inline(never)]
fn attempt_terms_of<P: RequestProtocol>(
    protocol: &P,
    request: RequestView<'_>,
) -> (Option<Deadline>, Option<Box<AttemptTerms>>) {
    let carried = request.extension().copied();
    let own = request.extension::<CallOptions>().cloned();
    let options = match (own, protocol.options_by_rule(request)) {
        (Some(own), Some(rule)) => Some(own.or(&rule)),
        (own, rule) => own.or(rule),
    };
    let of_options = options.as_ref().and_then(CallOptions::get_deadline);
    let existing = protocol.existing_deadline(request, carried);
    let deadline = [carried, existing, of_options].into_iter().flatten().min();
    (deadline, options.map(|options| Box::new(options.into())))
}

/// A protocol that reads requests of type `Request`. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "this layer cannot read a request of type `{Request}`",
    note = "a layer of HTTP reads `http::Request<B>`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt; `GuardLayer::classified(…)` guards any request",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait ReadRequest<Request>: RequestProtocol {
    /// Returns a view of the request.
    #[doc(hidden)]
    fn view(request: &Request) -> RequestView<'_>;

    /// Returns the extensions, unless the request type hides them.
    #[doc(hidden)]
    fn extensions_mut(request: &mut Request) -> Option<&mut Extensions> {
        let _ = request;
        None
    }

    /// Writes the time left to the header for it, if the request has that header, because the request has waited.
    #[doc(hidden)]
    fn renew_deadline(&self, request: &mut Request, deadline: Deadline) {
        let _ = (request, deadline);
    }
}

impl<B> ReadRequest<Request<B>> for Http {
    #[inline]
    fn view(request: &Request<B>) -> RequestView<'_> {
        request.into()
    }

    fn extensions_mut(request: &mut Request<B>) -> Option<&mut Extensions> {
        Some(request.extensions_mut())
    }

    fn renew_deadline(&self, request: &mut Request<B>, deadline: Deadline) {
        self.renew_header(request.headers_mut(), deadline);
    }
}

#[cfg(feature = "reqwest")]
impl ReadRequest<reqwest::Request> for Http {
    #[inline]
    fn view(request: &reqwest::Request) -> RequestView<'_> {
        request.into()
    }

    fn renew_deadline(&self, request: &mut reqwest::Request, deadline: Deadline) {
        self.renew_header(request.headers_mut(), deadline);
    }
}

impl<Request, C: Send + Sync + 'static> ReadRequest<Request> for CloneRequest<C> {
    #[inline]
    fn view(_: &Request) -> RequestView<'_> {
        RequestView::HEADLESS
    }
}

impl<C: Send + Sync + 'static> RequestProtocol for CloneRequest<C> {
    type Errors = BoxedError;

    /// Allows every request to be retried and repeated, because only the classifier decides.
    fn retry_safety(&self, _: RequestView<'_>) -> RetrySafety {
        RetrySafety { may_retry: true, repeatable: true, keyed: false }
    }
}

impl RequestProtocol for Http {
    type Errors = BoxedError;

    #[inline]
    fn has_no_terms(&self, request: RequestView<'_>) -> bool {
        request.extensions().is_none_or(Extensions::is_empty)
    }

    fn only_forbids(&self, options: &CallOptions) -> bool {
        options.only_forbids()
    }

    #[inline]
    fn options_by_rule(&self, request: RequestView<'_>) -> Option<CallOptions> {
        self.options_for.as_ref()?(request)
    }

    /// Returns the request's terms, to which the header for a deadline belongs. The layer writes it anew.
    fn terms(&self, request: RequestView<'_>) -> RequestTerms {
        let own = terms_of(self, request);
        let Some(header) = &self.deadline_header else { return own };
        let in_header = request.headers().and_then(|headers| header.read(headers));
        RequestTerms { deadline: earlier(own.deadline, in_header), existing_deadline: None, ..own }
    }

    /// Returns `true` if a request is not repeatable without a key, and there is room for the header. A handshake gets
    /// no key, because its server keeps no outcome under one.
    fn needs_key(&self, request: RequestView<'_>) -> bool {
        self.generate_keys
            && request.headers().is_some_and(|headers| headers.keys_len() < MOST_HEADERS)
            && !request.is_repeatable()
            && !self.is_handshake(request)
    }

    /// Allows an idempotent method to be repeated without a key, and any other method only with a key.
    fn retry_safety(&self, request: RequestView<'_>) -> RetrySafety {
        let idempotent = request.has_method(Method::is_idempotent);
        let keyed = !idempotent && self.trust_keys && request.is_repeatable();
        RetrySafety { may_retry: request.has_method(|_| true), repeatable: idempotent || keyed, keyed }
    }

    /// Returns `true` for QUERY and the safe methods of RFC 9110 §9.2.1, and with `idempotent` for the methods of
    /// §9.2.2, unless the request is a handshake. An idempotency key does not allow hedging, because servers refuse a
    /// second request while the first one with the same key is in flight.
    fn may_hedge(&self, request: RequestView<'_>, idempotent: bool) -> bool {
        // CONNECT is not idempotent.
        let allowed = |method: &Method| method.is_safe() || (idempotent && method.is_idempotent());
        request.has_method(allowed) && !request.contains(&UPGRADE)
    }

    fn is_handshake(&self, request: RequestView<'_>) -> bool {
        request.contains(&UPGRADE) || request.has_method(|method| *method == Method::CONNECT)
    }

    /// Returns `true` only if the inner service follows no redirects. Otherwise, the connection to a redirect's target
    /// may have failed, after the first server processed the request.
    fn errors_prove(&self) -> bool {
        self.redirects == Some(false)
    }

    fn sends_once(&self, request: RequestView<'_>) -> bool {
        self.redirects == Some(false) && !self.generate_keys && !request.is_repeatable()
    }

    // Not inlined: with the default destination, which it contains, it is one function for all layers.
    fn destination_of<'a>(&self, request: RequestView<'a>) -> Cow<'a, str> {
        let destination = match &self.destination {
            None => default_destination(request, self.by_host),
            Some(DestinationRule::OfRequest(destination)) => destination(request),
            Some(DestinationRule::OfUri(destination)) => match request.uri() {
                Some(Cow::Borrowed(uri)) => destination(uri),
                Some(Cow::Owned(uri)) => destination(&uri).into_owned().into(),
                None => default_destination(request, false),
            },
        };
        // The state of a destination with a long name is stored under its hash.
        if let Cow::Owned(hash) = bounded_name(&destination) {
            return hash.into();
        }
        destination
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::*;

    fn request(method: &str, headers: HeaderMap) -> Request<()> {
        let mut request = Request::builder().method(method).body(()).unwrap();
        *request.headers_mut() = headers;
        request
    }

    fn may_hedge(method: &str, headers: HeaderMap, idempotent: bool) -> bool {
        Http::new().may_hedge((&request(method, headers)).into(), idempotent)
    }

    fn one(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    // HG-14
    #[test]
    fn safe_methods_hedge_idempotent_on_request() {
        let rows = [
            ("GET", true, true),
            ("HEAD", true, true),
            ("OPTIONS", true, true),
            ("TRACE", true, true),
            ("QUERY", true, true),
            ("PUT", false, true),
            ("DELETE", false, true),
            ("POST", false, false),
            ("PATCH", false, false),
            ("CONNECT", false, false),
            ("PROPFIND", false, false),
        ];
        for (method, safe, idempotent) in rows {
            assert_eq!(may_hedge(method, HeaderMap::new(), false), safe, "{method}");
            assert_eq!(may_hedge(method, HeaderMap::new(), true), idempotent, "{method}, by opt-in");
        }
    }

    #[test]
    fn handshakes_are_recognised() {
        let is_handshake = |method, headers| Http::new().is_handshake((&request(method, headers)).into());
        assert!(is_handshake("GET", one(UPGRADE, "websocket")));
        assert!(is_handshake("CONNECT", HeaderMap::new()));
        assert!(!is_handshake("GET", one(http::header::CONNECTION, "upgrade")));
        assert!(!may_hedge("GET", one(UPGRADE, "websocket"), true));
    }

    #[test]
    fn key_alone_is_not_hedgeable() {
        let keyed = one(reattempt_http::IDEMPOTENCY_KEY, "\"one\"");
        assert!(!may_hedge("POST", keyed, true));
    }

    /// A saved request has the same facts as the request itself.
    #[test]
    fn saved_request_has_same_facts() {
        let key = || one(reattempt_http::IDEMPOTENCY_KEY, "\"one\"");
        let http = Http::new();
        for (method, headers) in [
            ("GET", HeaderMap::new()),
            ("PUT", one(UPGRADE, "h2c")),
            ("POST", HeaderMap::new()),
            ("POST", key()),
            ("POST", one(reattempt_http::IDEMPOTENCY_KEY, " ")),
            ("CONNECT", key()),
        ] {
            for uri in ["https://One.example:443/a?b", "http://u:p@one.example./", "/c", "*"] {
                let mut request = request(method, headers.clone());
                *request.uri_mut() = uri.parse().unwrap();
                let saved = reattempt_replay::SavedHead::new(&request);
                let (new, saved) = (RequestView::from(&request), RequestView::of_saved(&saved));
                let facts = |view: RequestView<'_>| {
                    let RetrySafety { may_retry, repeatable, keyed } = http.retry_safety(view);
                    let hedged = (http.may_hedge(view, false), http.may_hedge(view, true));
                    let destination = http.destination_of(view).into_owned();
                    (may_retry, repeatable, keyed, hedged, destination)
                };
                assert_eq!(facts(new), facts(saved), "{method} {uri} {headers:?}");
            }
        }
    }
}
