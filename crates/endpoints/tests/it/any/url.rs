//! Whatever the base URLs and the request are, a request goes to an endpoint as a whole or stays as it is.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use http::{Request, Response, Uri};
use http_body_util::Empty;
use reattempt::Http;
use reattempt::endpoints::{Endpoints, EndpointsError, EndpointsLayer};
use tower::{Layer, service_fn};

use super::input::Input;

const PIECES: &[&str] = &[
    "http://",
    "https://",
    "HTTP://",
    "ftp://",
    "a",
    "A",
    "b.example",
    "[::1]",
    "[::",
    "127.0.0.1",
    ":80",
    ":443",
    ":81",
    ":0",
    ":65536",
    ":",
    "/",
    "//",
    "/v1",
    "/v1/",
    "/v10",
    "/.",
    "/..",
    "/%2e%2E",
    "/..\\",
    "%2F",
    "?",
    "?q=1",
    "#f",
    "@",
    "user:secret@",
    "x:y@z@",
    " ",
    "\t",
    "*",
    "%",
    "é",
];

type Body = Empty<bytes::Bytes>;

/// Reads base URLs and sends a request to one of them.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let count = 1 + input.below(3);
    let texts: Vec<_> = (0..count).map(|_| url(&mut input)).collect();
    let secret = texts.iter().any(|text| {
        let authority = text.split_once("//").and_then(|(_, rest)| rest.split(['/', '?', '#']).next());
        authority.is_some_and(|authority| authority.contains("secret@"))
    });
    let endpoints = match Endpoints::urls(&texts) {
        Ok(endpoints) => endpoints,
        Err(error) => {
            let text = error.to_string();
            assert!(!secret || !text.contains("secret"), "{texts:?}: {text}");
            return;
        }
    };
    assert!(!secret, "{texts:?}");
    let layer = EndpointsLayer::with(Http::new(), endpoints);
    let names = |layer: &EndpointsLayer| -> Vec<_> {
        layer.endpoints().view().iter().map(|view| view.name.to_string()).collect()
    };
    let listed = names(&layer);
    assert_eq!(listed.len(), texts.len());
    // A name is a base URL again, and its own normal form.
    let again = EndpointsLayer::http(&listed).unwrap();
    assert_eq!(names(&again), listed, "{texts:?}");

    let mut target = if input.flag() { listed[0].clone() } else { String::new() };
    target.push_str(input.pick(&["", "/", "/v1", "/a/b"]));
    target.push_str(input.pick(&["", "?q=1", "?"]));
    if input.flag() {
        target.push_str(&String::from_utf8_lossy(&input.text(PIECES)));
    }
    let Ok(request) = Request::get(&target).body(Body::new()) else { return };
    let before = request.uri().clone();
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let client = layer.layer(service_fn(move |request: Request<Body>| {
        *noted.lock().unwrap() = Some(request.uri().clone());
        async { Ok::<_, Infallible>(Response::new(Body::new())) }
    }));
    let sent = client.send(request).now_or_never().unwrap();
    let is_below = |uri: &Uri, base: &Uri| rest(uri, base).is_some();
    let bases: Vec<Uri> = listed.iter().map(|name| name.parse().unwrap()).collect();
    let Some(after) = seen.lock().unwrap().take() else {
        // It would leave a prefix.
        let error = sent.unwrap_err();
        assert!(error.downcast_ref::<EndpointsError>().is_some_and(|error| !error.is_foreign()), "{error}");
        assert!(before.path().contains(['.', '%']) && bases.iter().any(|base| base.path() != "/"), "{before}");
        return;
    };
    match before.authority().is_none() {
        true if !before.path().starts_with('/') => assert_eq!(after, before),
        true => {
            // One base may be below another one.
            let joined = |base: &Uri| format!("{}{}", base.path().trim_end_matches('/'), before.path());
            let found = bases.iter().any(|base| is_below(&after, base) && after.path() == joined(base));
            assert!(found, "{listed:?} {before} {after}");
            assert_eq!(after.query(), before.query());
        }
        false if after == before => {
            // It is for something else, or the endpoint is the base of the requests.
            assert!(!is_below(&before, &bases[0]) || bases.contains(&bases[0]), "{listed:?} {before}");
        }
        false => {
            let rest_before = rest(&before, &bases[0]).unwrap();
            let found = bases.iter().any(|base| rest(&after, base) == Some(rest_before));
            assert!(found && after.query() == before.query(), "{listed:?} {before} {after}");
        }
    }
}

/// Returns an URL, most often one that is nearly valid.
fn url(input: &mut Input<'_>) -> String {
    let mut text = String::new();
    let kind = input.below(4);
    if kind > 0 {
        text.push_str(input.pick(&["http://a", "http://c:81/v1", "http://d/v1/v2", "https://b.example", "http://"]));
    }
    if kind < 2 {
        text.push_str(&String::from_utf8_lossy(&input.text(PIECES)));
    }
    text
}

/// Returns the path of a request below a base, without the slash in front of it.
fn rest<'a>(uri: &'a Uri, base: &Uri) -> Option<&'a str> {
    let own_port = if base.scheme_str() == Some("http") { 80 } else { 443 };
    let port = |uri: &Uri| uri.port_u16().unwrap_or(own_port);
    let same_host = uri.host()?.eq_ignore_ascii_case(base.host()?) && port(uri) == port(base);
    let rest = uri.path().strip_prefix(base.path().trim_end_matches('/'))?;
    let ends = rest.is_empty() || rest.starts_with('/');
    (uri.scheme() == base.scheme() && same_host && ends).then(|| rest.strip_prefix('/').unwrap_or(rest))
}
