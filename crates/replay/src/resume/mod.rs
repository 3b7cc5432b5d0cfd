//! The rules for resuming a response body whose connection broke.
//!
//! A GET whose connection breaks in the middle of the body can be resumed with a range request. The danger is a file
//! that has changed in the meantime: half of one version joined to half of another is worse than an error. The rules
//! are therefore strict. [`ResumePoint`] applies them to plain values, without a clock, client or buffer.
//!
//! | the first response | rule |
//! |---|---|
//! | request | a GET without a precondition such as `If-None-Match`. It may have its own `Range` with one part, and an `If-Range` with it |
//! | status | 200, or 206 in response to the request's own `Range`. The body is then continued within its `Content-Range` |
//! | `Content-Length` | present, because it reveals a premature end, and because a layer that decodes the body would have removed it |
//! | `Transfer-Encoding` | absent, because it overrides `Content-Length` (RFC 9112 §6.3) |
//! | `Content-Encoding` | absent, because a compressor may not produce the same bytes twice |
//! | validator | one strong `ETag`; without an `ETag`, a `Last-Modified` from 1980-01-02 on, at least 60 s before `Date` |
//!
//! The next request contains `Range: bytes=k-m` for the first missing byte *k* and the last byte *m*, the validator in
//! `If-Range` (RFC 9110 §13.1.5), and `Accept-Encoding: identity`. The range has an end because some servers know no
//! other ranges. [`check`](ResumePoint::check) accepts a response with the same validator and no coding except
//! `chunked`, if its total length is the same:
//!
//! | response | effect |
//! |---|---|
//! | 206 whose range begins at *k* | the body continues |
//! | 206 whose range ends before *m* | the body continues, and the rest is requested again |
//! | 206 whose range begins before *k*, and which repeats the validator | the first bytes are [skipped](Part::skip) |
//! | 206 with `bytes k-m/*` | the body continues, because the length is known |
//! | 206 without `Last-Modified`, if the validator is a date | the body continues (RFC 9110 §15.3.7) |
//! | 200 that repeats the validator, if the body reaches the end of the content | the first bytes are skipped |
//!
//! Anything else is a [`Mismatch`]. A [`Checkpoint`] continues a download that an earlier process began.
//!
//! A validator identifies a version of one resource. The caller must therefore send the next request to the same
//! resource, or to a replica of it.

mod checkpoint;
mod content_range;
mod mismatch;
mod part;
mod validator;

use http::header::{
    ACCEPT_ENCODING, ACCEPT_RANGES, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

pub use checkpoint::{Checkpoint, Continuation, WeakValidator};
use content_range::{ContentRange, is_one_range, unsatisfied};
pub use mismatch::{Mismatch, TooLong};
pub use part::Part;
use validator::Validator;

/// The request headers that may make a response dependent on the caller's own copy, or the end of HTTP.
const OWN_TERMS: [HeaderName; 5] = [IF_MATCH, IF_NONE_MATCH, IF_MODIFIED_SINCE, IF_UNMODIFIED_SINCE, UPGRADE];

/// The maximum number of header names. A `HeaderMap` holds up to 24,576, and a request for the rest adds three.
const MAX_NAMES: usize = 24_573;

/// The state needed to resume a response body: its validator, its range, and the position of the first missing byte.
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
/// assert_eq!(again.headers()["range"], "bytes=400-999");
/// assert_eq!(again.headers()["if-range"], "\"7\"");
///
/// let rest = Response::builder().status(206).header("etag", "\"7\"").header("content-range", "bytes 400-999/1000");
/// let rest = rest.body(())?;
/// let part = point.check(rest.status(), rest.headers())?;
/// assert_eq!((part.skip(), part.length()), (0, 600));
/// // The server sends the whole content if it has changed.
/// let refused = point.check(StatusCode::OK, &HeaderMap::new());
/// assert_eq!(refused, Err(Mismatch::Status(StatusCode::OK)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumePoint {
    validator: Validator,
    /// The position of the body's first byte in the content.
    first: u64,
    /// The position of the first missing byte.
    position: u64,
    /// The position after the body's last byte.
    end: u64,
    /// The length of the whole content, if it is known.
    total: Option<u64>,
}

impl ResumePoint {
    /// Creates the state at the start of a response body, from the heads of the request and the response. Returns
    /// `None` if the body cannot be resumed.
    pub fn new(method: &Method, request: &HeaderMap, status: StatusCode, response: &HeaderMap) -> Option<Self> {
        let is_plain = !is_encoded(response) && !response.contains_key(TRANSFER_ENCODING);
        if !Self::permits(method, request) || !is_plain || refuses_ranges(response) {
            return None;
        }
        let length = number(only(response, &CONTENT_LENGTH)?)?;
        let range = match status {
            StatusCode::OK => ContentRange { first: 0, end: length, total: Some(length) },
            StatusCode::PARTIAL_CONTENT if request.contains_key(RANGE) && !is_multipart(response) => {
                only(response, &CONTENT_RANGE).and_then(ContentRange::parse)?
            }
            _ => return None,
        };
        let ContentRange { first, end, total } = range;
        let validator = Validator::of(response)?;
        (range.length() == length).then_some(Self { validator, first, position: first, end, total })
    }

    /// Returns `true` if the request head allows its response to be resumed. The response itself is not considered.
    pub fn permits(method: &Method, request: &HeaderMap) -> bool {
        let has_room = request.keys_len() <= MAX_NAMES;
        let is_one_part = match request.contains_key(RANGE) {
            true => only(request, &RANGE).is_some_and(is_one_range),
            false => !request.contains_key(IF_RANGE),
        };
        method == Method::GET && has_room && is_one_part && !OWN_TERMS.iter().any(|name| request.contains_key(name))
    }

    /// Records received bytes.
    ///
    /// # Errors
    /// Returns [`TooLong`] if the body is longer than its `Content-Length`. The bytes are then not counted.
    pub fn receive(&mut self, bytes: u64) -> Result<(), TooLong> {
        match self.position.checked_add(bytes) {
            Some(position) if position <= self.end => {
                self.position = position;
                Ok(())
            }
            _ => Err(TooLong { total: self.length() }),
        }
    }

    /// Returns the position of the first missing byte in the content.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Returns the number of bytes received.
    pub const fn received(&self) -> u64 {
        self.position - self.first
    }

    /// Returns the number of missing bytes.
    pub const fn missing(&self) -> u64 {
        self.end - self.position
    }

    /// Returns the length of the body in bytes.
    pub const fn length(&self) -> u64 {
        self.end - self.first
    }

    /// Returns the length of the whole content in bytes. `None` if the server does not know it, which is possible only
    /// for a request with its own `Range`.
    pub const fn total(&self) -> Option<u64> {
        self.total
    }

    /// Returns the validator, for a [`Checkpoint`] that a later process continues from.
    pub const fn validator(&self) -> &HeaderValue {
        self.validator.value()
    }

    /// Returns `true` if the validator is an entity tag, and `false` if it is a date. Two versions from the same second
    /// have the same date.
    pub const fn has_tag(&self) -> bool {
        matches!(self.validator, Validator::ETag(_))
    }

    /// Sets the headers of a request for the missing part. Call it only if bytes are [missing](Self::missing).
    pub fn write_to(&self, request: &mut HeaderMap) {
        write_range(request, self.position, Some(self.end), &self.validator);
    }

    /// Checks that the body of this response continues the content at the first missing byte.
    ///
    /// # Errors
    /// Returns the first mismatch. The bytes must then not be joined.
    pub fn check(&self, status: StatusCode, response: &HeaderMap) -> Result<Part, Mismatch> {
        let repeats_validator = self.validator.is_repeated_in(response);
        let range = match status {
            StatusCode::PARTIAL_CONTENT => read_part(&self.validator, response)?,
            StatusCode::OK if repeats_validator => self.read_whole(response)?,
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let total = only(response, &CONTENT_RANGE).and_then(unsatisfied).ok_or(Mismatch::Status(status))?;
                return Err(Mismatch::Unsatisfied { expected: self.position, total });
            }
            _ => return Err(Mismatch::Status(status)),
        };
        match (self.total, range.total) {
            (Some(expected), Some(found)) if expected != found => return Err(Mismatch::Total { expected, found }),
            (None, Some(found)) if found < self.end => return Err(Mismatch::Total { expected: self.end, found }),
            _ => {}
        }
        let is_covered = range.first <= self.position && self.position < range.end && range.end <= self.end;
        if !is_covered || range.first < self.position && !repeats_validator {
            let last = range.end.saturating_sub(1);
            return Err(Mismatch::Range { expected: self.position, first: range.first, last });
        }
        Ok(Part { skip: self.position - range.first, length: range.end - self.position, total: range.total })
    }

    /// Returns the range of a response that has the whole content.
    fn read_whole(&self, response: &HeaderMap) -> Result<ContentRange, Mismatch> {
        if is_encoded(response) || is_transfer_encoded(response) {
            return Err(Mismatch::Encoding);
        }
        let length = only(response, &CONTENT_LENGTH).and_then(number);
        let expected = self.total.unwrap_or(self.end);
        let total = length.ok_or(Mismatch::Length { expected, found: None })?;
        Ok(ContentRange { first: 0, end: total, total: Some(total) })
    }
}

/// Returns the range of a 206 response, if it has one part of the same version, without an encoding.
fn read_part(validator: &Validator, response: &HeaderMap) -> Result<ContentRange, Mismatch> {
    if is_multipart(response) {
        return Err(Mismatch::Multipart);
    }
    if is_encoded(response) || is_transfer_encoded(response) {
        return Err(Mismatch::Encoding);
    }
    if !validator.is_in(response) {
        return Err(Mismatch::Validator);
    }
    let range = only(response, &CONTENT_RANGE).and_then(ContentRange::parse).ok_or(Mismatch::NoRange)?;
    if response.contains_key(CONTENT_LENGTH) {
        let (expected, found) = (range.length(), only(response, &CONTENT_LENGTH).and_then(number));
        if found != Some(expected) {
            return Err(Mismatch::Length { expected, found });
        }
    }
    Ok(range)
}

/// Sets the headers of a request from `position` to before `end`, or to the end of the content.
fn write_range(request: &mut HeaderMap, position: u64, end: Option<u64>, validator: &Validator) {
    let last = end.map_or_else(String::new, |end| end.saturating_sub(1).to_string());
    // Numbers are always a valid header value.
    if let Ok(range) = HeaderValue::try_from(format!("bytes={position}-{last}")) {
        request.insert(RANGE, range);
    }
    request.insert(IF_RANGE, validator.value().clone());
    request.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
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
