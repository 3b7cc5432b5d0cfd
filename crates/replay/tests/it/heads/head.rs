//! Tests that every request of the `http` crate is restored exactly.

use http::uri::{Authority, Parts, PathAndQuery, Scheme};
use http::{Extensions, HeaderName, HeaderValue, Method, Request, Uri, Version};
use reattempt_replay::SavedHead;

use super::input::Input;

const TARGETS: &[&str] = &[
    "http",
    "https",
    "HTTP",
    "git+ssh",
    "://",
    ":",
    "/",
    "//",
    "*",
    "?",
    "#",
    "@",
    "a",
    "one.example",
    "[::1]",
    ":80",
    "%20",
    "\u{e9}",
    "~",
    ".",
    "b=c&d",
    "",
];
const NAMES: &[&str] = &["x-", "a", "Accept", "traceparent", "-", "_", "1", "content-", "type", "~"];
const VALUES: &[&str] = &["", " ", "\t", "a", ":", "\u{e9}", "*/*", "0", ",", "\""];
const USUAL: &[&str] = &[
    "accept",
    "accept-encoding",
    "authorization",
    "content-length",
    "cookie",
    "host",
    "te",
    "tracestate",
    "user-agent",
    "x-request-id",
    "upgrade",
    "idempotency-key",
    "x-many",
];
const METHODS: &[Method] = &[
    Method::GET,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::HEAD,
    Method::OPTIONS,
    Method::CONNECT,
    Method::PATCH,
    Method::TRACE,
    Method::QUERY,
];
const VERSIONS: &[Version] = &[Version::HTTP_09, Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];

/// More names than a header map can hold.
const TOO_MANY: u32 = 24_700;

/// Saves the request that `data` encodes, restores it three times and compares.
pub(crate) fn check(data: &[u8]) {
    let request = request(&mut Input::new(data));
    let mut kept = SavedHead::new(&request);
    assert_eq!(kept.uri().as_ref(), Some(request.uri()));
    assert_eq!(kept.method().as_ref(), Some(request.method()));
    assert_eq!(kept.scheme(), request.uri().scheme_str());
    assert_eq!(kept.authority(), request.uri().authority().map(Authority::as_str));
    for name in request.headers().keys().take(50) {
        assert!(kept.contains(name));
        assert!(kept.values(name).eq(request.headers().get_all(name).iter().map(HeaderValue::as_bytes)));
    }
    for _ in 0..2 {
        let mut again = Request::new(());
        kept.copy_to(&mut again);
        assert_same(&again, &request);
    }
    let mut again = Request::new(());
    kept.move_to(&mut again);
    assert_same(&again, &request);
}

fn assert_same(again: &Request<()>, request: &Request<()>) {
    assert_eq!(again.method(), request.method());
    assert_eq!(again.version(), request.version());
    let (uri, expected) = (again.uri(), request.uri());
    assert_eq!(uri, expected);
    // Case matters as well.
    assert_eq!(uri.to_string(), expected.to_string());
    assert_eq!(uri.scheme_str(), expected.scheme_str());
    assert_eq!(uri.authority().map(Authority::as_str), expected.authority().map(Authority::as_str));
    let path = |uri: &Uri| uri.path_and_query().map(|path| path.as_str().to_owned());
    assert_eq!(path(uri), path(expected));
    assert_eq!(again.headers().len(), request.headers().len());
    for (one, other) in again.headers().iter().zip(request.headers()) {
        assert_eq!(one, other);
        assert_eq!(one.1.is_sensitive(), other.1.is_sensitive());
    }
    let extensions = |extensions: &Extensions| {
        (extensions.get::<u8>().copied(), extensions.get::<String>().cloned(), extensions.len())
    };
    assert_eq!(extensions(again.extensions()), extensions(request.extensions()));
}

/// Returns the request that `input` encodes.
pub(crate) fn request(input: &mut Input<'_>) -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = method(input);
    *request.uri_mut() = uri(input).unwrap_or_default();
    *request.version_mut() = input.pick(VERSIONS);
    if input.flag() {
        request.extensions_mut().insert(input.byte());
    }
    if input.flag() {
        request.extensions_mut().insert(String::from("an extension"));
    }
    for _ in 0..input.below(16) {
        change_headers(input, &mut request);
    }
    request
}

fn method(input: &mut Input<'_>) -> Method {
    let known = METHODS.get(usize::from(input.below(16))).cloned();
    known.or_else(|| Method::from_bytes(&input.text(TARGETS)).ok()).unwrap_or_default()
}

fn uri(input: &mut Input<'_>) -> Option<Uri> {
    match input.below(6) {
        0 => Some(Uri::from(Authority::try_from(&*input.text(TARGETS)).ok()?)),
        1 => Some(Uri::from(path(input)?)),
        2 | 3 => {
            let mut parts = Parts::default();
            if input.flag() {
                parts.scheme = Scheme::try_from(&*input.text(TARGETS)).ok();
            }
            if input.flag() {
                parts.authority = Authority::try_from(&*input.text(TARGETS)).ok();
            }
            if input.flag() {
                parts.path_and_query = path(input);
            }
            Uri::from_parts(parts).ok()
        }
        _ => Uri::try_from(&*input.text(TARGETS)).ok(),
    }
}

fn path(input: &mut Input<'_>) -> Option<PathAndQuery> {
    let mut text = input.text(TARGETS);
    if input.byte() == 255 {
        text.resize(usize::from(u16::MAX) - usize::from(input.byte()), b'x');
    }
    PathAndQuery::try_from(text).ok()
}

fn change_headers(input: &mut Input<'_>, request: &mut Request<()>) {
    let headers = request.headers_mut();
    let kind = input.below(32);
    if kind == 31 {
        let names = match (input.byte(), input.byte()) {
            (255, 170) => TOO_MANY,
            (names, _) => names.into(),
        };
        for number in 0..names {
            let name = HeaderName::try_from(format!("x-{number}")).expect("a token");
            // A full map refuses further headers.
            let _ = headers.try_append(name, HeaderValue::from(number));
        }
        return;
    }
    let Some(name) = header_name(input) else { return };
    let Ok(mut value) = HeaderValue::from_bytes(&input.text(VALUES)) else { return };
    value.set_sensitive(kind < 4);
    match kind {
        0..=19 => {
            let _ = headers.try_append(name, value);
        }
        20..=26 => {
            let _ = headers.try_insert(name, value);
        }
        _ => {
            headers.remove(name);
        }
    }
}

fn header_name(input: &mut Input<'_>) -> Option<HeaderName> {
    match input.below(4) {
        0 => HeaderName::from_bytes(&input.text(NAMES)).ok(),
        1 => HeaderName::from_lowercase(&input.text(NAMES)).ok(),
        2 => Some(HeaderName::from_static("idempotency-key")),
        _ => Some(HeaderName::from_static(input.pick(USUAL))),
    }
}
