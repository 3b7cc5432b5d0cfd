//! The rules for resuming a response body whose connection broke.
//!
//! A GET whose connection breaks in the middle of the body can be resumed with a range request. The danger is a file
//! that has changed in the meantime: half of one version joined to half of another is worse than an error. The rules
//! are therefore strict. [`ResumePoint`] applies them to plain values, without a clock, client or buffer.
//!
//! | the first response | rule |
//! |---|---|
//! | request | a GET without its own `Range` and without a precondition such as `If-None-Match` |
//! | status | 200, because only then is the body the whole content |
//! | `Content-Length` | present, because it reveals a premature end, and because a layer that decodes the body would have removed it |
//! | `Transfer-Encoding` | absent, because it overrides `Content-Length` (RFC 9112 §6.3) |
//! | `Content-Encoding` | absent, because a compressor may not produce the same bytes twice |
//! | validator | one strong `ETag`; without an `ETag`, a `Last-Modified` from 1980-01-02 on, at least 60 s before `Date` |
//!
//! The next request contains `Range: bytes=k-` for the first missing byte *k*, the validator in `If-Range`, and
//! `Accept-Encoding: identity`. [`check`](ResumePoint::check) accepts only a 206 response with the same validator and
//! no coding except `chunked`. Its `Content-Range` must be exactly the missing part of the same total. Anything else is
//! a [`Mismatch`].
//!
//! A validator identifies a version of one resource. The caller must therefore send the next request to the same
//! resource, or to a replica of it.

mod content_range;
mod mismatch;
mod validator;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use content_range::ContentRange;
pub use mismatch::{Mismatch, TooLong};
use validator::Validator;

/// The request headers that may make a response partial, dependent on the caller's own copy, or the end of HTTP.
const OWN_TERMS: [HeaderName; 7] =
    [RANGE, IF_RANGE, IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, UPGRADE];

/// The maximum number of header names. A `HeaderMap` holds up to 24,576, and a request for the rest adds three.
const MAX_NAMES: usize = 24_573;

/// The state needed to resume a response body: its validator, its length, and the number of bytes received.
///
/// ```
/// use http::{HeaderMap, Request, Response, StatusCode};
/// use reattempt_replay::resume::{Mismatch, ResumePoint};
///
/// let request = Request::get("http://one.example/film").body(())?;
/// let response = Response::builder().header("etag", "\"7\"").header("content-length", 1000).body(())?;
/// let mut point = ResumePoint::new(request.method(), request.headers(), response.status(), response.headers())
///     .expect("a strong ETag and a length");
///
/// point.receive(400)?; // then the connection breaks
/// let mut again = Request::get("http://one.example/film").body(())?;
/// point.write_to(again.headers_mut());
/// assert_eq!(again.headers()["range"], "bytes=400-");
/// assert_eq!(again.headers()["if-range"], "\"7\"");
///
/// let rest = Response::builder().status(206).header("etag", "\"7\"").header("content-range", "bytes 400-999/1000");
/// let rest = rest.body(())?;
/// assert_eq!(point.check(rest.status(), rest.headers()), Ok(()));
/// // The server sends the whole content if it has changed.
/// let refused = point.check(StatusCode::OK, &HeaderMap::new());
/// assert_eq!(refused, Err(Mismatch::Status(StatusCode::OK)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    validator: Validator,
    total: u64,
    received: u64,
}

impl ResumePoint {
    /// Creates the state at the start of a response body, from the heads of the request and the response. Returns
    /// `None` if the body cannot be resumed.
    pub fn new(method: &Method, request: &HeaderMap, status: StatusCode, response: &HeaderMap) -> Option<Self> {
        let is_whole = Self::permits(method, request) && status == StatusCode::OK;
        let is_plain = !is_encoded(response) && !response.contains_key(TRANSFER_ENCODING);
        if !is_whole || !is_plain || refuses_ranges(response) {
            return None;
        }
        let total = number(only(response, &CONTENT_LENGTH)?)?;
        Some(Self { validator: Validator::of(response)?, total, received: 0 })
    }

    /// Returns `true` if the request head allows its response to be resumed. The response itself is not considered.
    pub fn permits(method: &Method, request: &HeaderMap) -> bool {
        let has_room = request.keys_len() <= MAX_NAMES;
        method == Method::GET && has_room && !OWN_TERMS.iter().any(|name| request.contains_key(name))
    }

    /// Records received bytes.
    ///
    /// # Errors
    /// Returns [`TooLong`] if the body is longer than its `Content-Length`. The bytes are then not counted.
    pub fn receive(&mut self, bytes: u64) -> Result<(), TooLong> {
        match self.received.checked_add(bytes) {
            Some(received) if received <= self.total => {
                self.received = received;
                Ok(())
            }
            _ => Err(TooLong { total: self.total }),
        }
    }

    /// Returns the number of bytes received, which is the position of the first missing byte.
    pub const fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of missing bytes.
    pub const fn missing(&self) -> u64 {
        self.total - self.received
    }

    /// Returns the length of the whole content in bytes.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// Sets the headers of a request for the missing part. Call it only if bytes are [missing](Self::missing).
    pub fn write_to(&self, request: &mut HeaderMap) {
        let range = HeaderValue::try_from(format!("bytes={}-", self.received));
        // A number is always a valid header value.
        if let Ok(range) = range {
            request.insert(RANGE, range);
        }
        request.insert(IF_RANGE, self.validator.value().clone());
        request.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }

    /// Checks that the body of this response continues the content at the first missing byte.
    ///
    /// # Errors
    /// Returns the first mismatch. The bytes must then not be joined.
    pub fn check(&self, status: StatusCode, response: &HeaderMap) -> Result<(), Mismatch> {
        if status != StatusCode::PARTIAL_CONTENT {
            return Err(Mismatch::Status(status));
        }
        if is_multipart(response) {
            return Err(Mismatch::Multipart);
        }
        if is_encoded(response) || is_transfer_encoded(response) {
            return Err(Mismatch::Encoding);
        }
        if !self.validator.is_in(response) {
            return Err(Mismatch::Validator);
        }
        let range = only(response, &CONTENT_RANGE).and_then(ContentRange::parse).ok_or(Mismatch::NoRange)?;
        if range.total != self.total {
            return Err(Mismatch::Total { expected: self.total, found: range.total });
        }
        if range.first != self.received || range.last.checked_add(1) != Some(self.total) {
            return Err(Mismatch::Range { expected: self.received, first: range.first, last: range.last });
        }
        let length = response.contains_key(CONTENT_LENGTH).then(|| only(response, &CONTENT_LENGTH).and_then(number));
        match length {
            Some(length) if length != Some(self.missing()) => Err(Mismatch::Length),
            _ => Ok(()),
        }
    }
}

/// Returns the value of a header that occurs once, or `None` if it is missing or repeated.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Returns a header's number, or `None` unless it consists only of digits and is below 2⁶⁴.
fn number(value: &HeaderValue) -> Option<u64> {
    digits(value.to_str().ok()?)
}

fn digits(text: &str) -> Option<u64> {
    // `parse` would also accept a sign.
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Returns `true` if a content coding was applied, or may have been.
fn is_encoded(headers: &HeaderMap) -> bool {
    headers.get_all(CONTENT_ENCODING).iter().any(|value| !value.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Returns `true` if any transfer coding other than `chunked` was applied. Clients decode only that one.
fn is_transfer_encoded(headers: &HeaderMap) -> bool {
    let is_chunked = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"chunked");
    headers.contains_key(TRANSFER_ENCODING) && !only(headers, &TRANSFER_ENCODING).is_some_and(is_chunked)
}

/// Returns `true` if the server states that it does not support ranges.
fn refuses_ranges(headers: &HeaderMap) -> bool {
    headers.get_all(ACCEPT_RANGES).iter().any(|value| value.as_bytes().eq_ignore_ascii_case(b"none"))
}

/// Returns `true` if the body consists of several parts with their own headers.
fn is_multipart(headers: &HeaderMap) -> bool {
    let starts =
        |value: &HeaderValue| value.as_bytes().get(..10).is_some_and(|start| start.eq_ignore_ascii_case(b"multipart/"));
    headers.get_all(CONTENT_TYPE).iter().any(starts)
}
