//! A download that an earlier process began.

use std::error::Error;
use std::fmt;

use http::header::{CONTENT_RANGE, ETAG};
use http::{HeaderMap, HeaderValue, StatusCode};

use super::content_range::unsatisfied;
use super::validator::Validator;
use super::{Mismatch, ResumePoint, only, read_part, write_range};

/// A position from which a download continues that stopped earlier: the length of a file on disk, and the validator
/// that was stored beside it.
///
/// The caller sends its own request with the headers of [`write_to`](Self::write_to), through any client.
/// [`check`](Self::check) then tells from the response's head what its body is.
///
/// ```
/// use http::{HeaderValue, Request, Response};
/// use reattempt_replay::resume::{Checkpoint, Continuation};
///
/// // The file on disk has 400 bytes, and its validator was stored beside it.
/// let checkpoint = Checkpoint::new(400, HeaderValue::from_static("\"7\""))?;
/// let mut request = Request::get("http://one.example/film").body(())?;
/// checkpoint.write_to(request.headers_mut());
/// assert_eq!(request.headers()["range"], "bytes=400-");
///
/// let rest = Response::builder().status(206).header("etag", "\"7\"").header("content-range", "bytes 400-999/1000");
/// let rest = rest.body(())?;
/// match checkpoint.check(rest.status(), rest.headers())? {
///     Continuation::Rest(point) => assert_eq!((point.position(), point.total()), (400, Some(1000))),
///     Continuation::Whole { .. } => println!("truncate the file, and write the body from its start"),
///     Continuation::Complete => println!("the file is complete"),
///     _ => {}
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    validator: Validator,
    offset: u64,
    total: Option<u64>,
}

/// The body that a server sends in response to a request from a [`Checkpoint`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Continuation {
    /// The body continues at the offset. If its end is before the total length, a further request must follow.
    Rest(ResumePoint),
    /// The body is the whole content from its start. The bytes on disk must be replaced.
    Whole {
        /// `true` if the content has another validator than before. If `false`, the server has ignored the range.
        changed: bool,
    },
    /// All bytes were received before. The response has no content.
    Complete,
}

impl Checkpoint {
    /// Creates a checkpoint from the number of bytes that were received, and a validator from
    /// [`ResumePoint::validator`].
    ///
    /// # Errors
    /// Returns [`WeakValidator`] unless the validator is a strong entity tag, or a date from 1980-01-02 on.
    pub fn new(offset: u64, validator: HeaderValue) -> Result<Self, WeakValidator> {
        match Validator::from_value(&validator) {
            Some(validator) => Ok(Self { validator, offset, total: None }),
            None => Err(WeakValidator { validator }),
        }
    }

    /// Sets the length of the whole content in bytes, if it was stored too. The request then ends at the last byte,
    /// because some servers know only such ranges. Any other length is a mismatch.
    pub fn total(mut self, total: u64) -> Self {
        self.total = Some(total);
        self
    }

    /// Sets the headers of the request: `Range`, `If-Range` and `Accept-Encoding`.
    pub fn write_to(&self, request: &mut HeaderMap) {
        let end = self.total.filter(|&total| total > self.offset);
        write_range(request, self.offset, end, &self.validator);
    }

    /// Returns what the body of this response is.
    ///
    /// A 416 with the offset as total length means that nothing is missing. Servers send it without looking at the
    /// validator, so another version of equal length is detected only if they add their `ETag`.
    ///
    /// # Errors
    /// Returns the first mismatch. The body must then not be used, and the bytes on disk are as good as before.
    pub fn check(&self, status: StatusCode, response: &HeaderMap) -> Result<Continuation, Mismatch> {
        match status {
            StatusCode::OK => Ok(Continuation::Whole { changed: !self.validator.is_repeated_in(response) }),
            StatusCode::PARTIAL_CONTENT => {
                let range = read_part(&self.validator, response)?;
                self.check_total(range.total)?;
                if range.first != self.offset || self.total.is_some_and(|total| range.end > total) {
                    return Err(Mismatch::Range { expected: self.offset, first: range.first, last: range.end - 1 });
                }
                let (validator, total) = (self.validator.clone(), range.total.or(self.total));
                let (first, end) = (range.first, range.end);
                Ok(Continuation::Rest(ResumePoint { validator, first, position: first, end, total }))
            }
            StatusCode::RANGE_NOT_SATISFIABLE => {
                let total = only(response, &CONTENT_RANGE).and_then(unsatisfied).ok_or(Mismatch::Status(status))?;
                self.check_total(Some(total))?;
                if response.contains_key(ETAG) && !self.validator.is_repeated_in(response) {
                    return Err(Mismatch::Validator);
                }
                if total != self.offset {
                    return Err(Mismatch::Unsatisfied { expected: self.offset, total });
                }
                Ok(Continuation::Complete)
            }
            _ => Err(Mismatch::Status(status)),
        }
    }

    fn check_total(&self, found: Option<u64>) -> Result<(), Mismatch> {
        match (self.total, found) {
            (Some(expected), Some(found)) if expected != found => Err(Mismatch::Total { expected, found }),
            _ => Ok(()),
        }
    }
}

/// The error for a validator that does not identify one version of the content: a weak or invalid entity tag, or a date
/// before 1980-01-02.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeakValidator {
    validator: HeaderValue,
}

impl fmt::Display for WeakValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the validator {:?} is neither a strong entity tag nor a date", self.validator)
    }
}

impl Error for WeakValidator {}
