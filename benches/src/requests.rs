//! The requests that are sent.
//!
//! Each has eight headers: four constants and four made at run time. The names of two run-time
//! headers are in no table, neither in that of `http` nor in ours.

use bytes::Bytes;
#[cfg(feature = "peers")]
use http::Method;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::Full;

/// The body of every request through a tower service.
pub(crate) type Body = Full<Bytes>;

static KILOBYTE: [u8; 1024] = [7; 1024];

/// Returns a body of 1 KiB in static memory.
pub(crate) fn kilobyte() -> Bytes {
    Bytes::from_static(&KILOBYTE)
}

const CONSTANT: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];
const RUN_TIME: [&str; 4] = ["authorization", "x-request-id", "x-shop-caller", "x-shop-price-list"];
const UNKNOWN: [&str; 4] = ["x-shop-shelf", "x-shop-cart", "x-shop-caller", "x-shop-price-list"];

fn fill(headers: &mut HeaderMap, run_time: [&'static str; 4]) {
    for name in CONSTANT {
        headers.insert(name, HeaderValue::from_static("something/constant"));
    }
    for (number, name) in run_time.into_iter().enumerate() {
        let value = HeaderValue::try_from(format!("made-at-run-time-{number}")).unwrap();
        headers.insert(name, value);
    }
}

/// Builds a new request, as real clients do.
pub(crate) fn fresh_to(uri: &str, body: Body) -> Request<Body> {
    let mut request = Request::put(uri).body(body).unwrap();
    fill(request.headers_mut(), RUN_TIME);
    request
}

/// Builds a fresh request with 1 KiB.
pub(crate) fn fresh() -> Request<Body> {
    fresh_to("http://shop.example/orders/7", Full::new(kilobyte()))
}

/// Builds a fresh request with 1 KiB; the names of its run-time headers are in no table.
pub(crate) fn fresh_unknown() -> Request<Body> {
    let mut request = Request::put("http://shop.example/orders/7").body(Full::new(kilobyte())).unwrap();
    fill(request.headers_mut(), UNKNOWN);
    request
}

/// Makes requests without a body by cloning a prepared one, so that clones share its run-time
/// values.
pub(crate) fn template() -> impl FnMut() -> Request<Body> {
    let template = fresh_to("http://shop.example/orders/7", Full::default());
    move || template.clone()
}

/// Builds a fresh request of reqwest.
#[cfg(feature = "peers")]
pub(crate) fn reqwest_fresh_to(url: &str) -> reqwest::Request {
    let mut request = reqwest::Request::new(Method::PUT, url.parse().unwrap());
    fill(request.headers_mut(), RUN_TIME);
    *request.body_mut() = Some(reqwest::Body::from(kilobyte()));
    request
}

/// Builds a fresh request of reqwest with 1 KiB.
#[cfg(feature = "peers")]
pub(crate) fn reqwest_fresh() -> reqwest::Request {
    reqwest_fresh_to("http://shop.example/orders/7")
}

/// Makes requests of reqwest without a body by cloning a prepared one.
#[cfg(feature = "peers")]
pub(crate) fn reqwest_template() -> impl FnMut() -> reqwest::Request {
    let mut template = reqwest_fresh();
    *template.body_mut() = None;
    move || template.try_clone().unwrap()
}
