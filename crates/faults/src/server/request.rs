//! A parser for HTTP/1.1 requests that arrive in pieces.

use std::borrow::Cow;
use std::io;

use http::{HeaderName, HeaderValue, Method, Request, Uri};

/// The maximum length of a head.
const HEAD: usize = 1024 * 1024;

/// A request that may have arrived only in part.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    bytes: Vec<u8>,
    head: Option<Head>,
}

#[derive(Debug)]
struct Head {
    /// The length of the head.
    end: usize,
    body: Length,
}

#[derive(Debug, Clone, Copy)]
enum Length {
    Bytes(usize),
    Chunked,
}

/// The part of a body that has arrived.
pub(super) struct Body<'a> {
    pub(super) data: Cow<'a, [u8]>,
    /// The length of the whole request, once it has arrived.
    pub(super) end: Option<usize>,
}

impl Incoming {
    /// Creates the next request on a connection, whose first bytes may have arrived with the previous one.
    pub(super) fn after(mut self) -> Self {
        let end = self.body().ok().and_then(|body| body.end).unwrap_or(self.bytes.len());
        self.bytes.drain(..end);
        Self { bytes: self.bytes, head: None }
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the request's head once it is complete.
    ///
    /// # Errors
    ///
    /// Returns an error if the head is not HTTP/1.1, or is too long.
    pub(super) fn take_head(&mut self) -> io::Result<Option<Request<()>>> {
        if self.head.is_some() {
            return Ok(None);
        }
        let Some(end) = self.bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
            return if self.bytes.len() > HEAD { Err(broken()) } else { Ok(None) };
        };
        let text = std::str::from_utf8(&self.bytes[..end]).map_err(|_| broken())?;
        let request = parse(text).ok_or_else(broken)?;
        let field = |name| request.headers().get(name).and_then(|it| it.to_str().ok());
        let body = match (field("transfer-encoding"), field("content-length")) {
            (Some(coding), _) if coding.eq_ignore_ascii_case("chunked") => Length::Chunked,
            (None, Some(length)) => Length::Bytes(length.parse().map_err(|_| broken())?),
            (None, None) => Length::Bytes(0),
            _ => return Err(broken()),
        };
        self.head = Some(Head { end: end + 4, body });
        Ok(Some(request))
    }

    /// Returns the part of the body that has arrived.
    ///
    /// # Errors
    ///
    /// Returns an error if the chunks are not HTTP/1.1.
    pub(super) fn body(&self) -> io::Result<Body<'_>> {
        let Some(head) = &self.head else { return Ok(Body { data: Cow::default(), end: None }) };
        let bytes = &self.bytes[head.end..];
        match head.body {
            Length::Bytes(length) => {
                let data = Cow::Borrowed(&bytes[..length.min(bytes.len())]);
                let end = (bytes.len() >= length).then(|| head.end + length);
                Ok(Body { data, end })
            }
            Length::Chunked => {
                let Body { data, end } = chunks(bytes)?;
                Ok(Body { data, end: end.map(|end| head.end + end) })
            }
        }
    }
}

fn broken() -> io::Error {
    io::ErrorKind::InvalidData.into()
}

fn parse(text: &str) -> Option<Request<()>> {
    let mut lines = text.split("\r\n");
    let mut first = lines.next()?.split(' ');
    let method = Method::from_bytes(first.next()?.as_bytes()).ok()?;
    let mut request = Request::new(());
    *request.method_mut() = method;
    *request.uri_mut() = first.next()?.parse::<Uri>().ok()?;
    first.next()?.strip_prefix("HTTP/1.")?;
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        request.headers_mut().append(name, HeaderValue::from_str(value.trim()).ok()?);
    }
    Some(request)
}

/// Decodes the chunks that have arrived, and finds the end of the trailers.
fn chunks(bytes: &[u8]) -> io::Result<Body<'static>> {
    let mut data = Vec::new();
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(line) = rest.windows(2).position(|window| window == b"\r\n") else {
            return Ok(Body { data: data.into(), end: None });
        };
        let size = std::str::from_utf8(&rest[..line]).ok().and_then(|line| line.split(';').next());
        let size = size.and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        let size = size.ok_or_else(broken)?;
        if size == 0 {
            // Next come the trailers, which end with an empty line.
            let end = rest[line..].windows(4).position(|window| window == b"\r\n\r\n");
            return Ok(Body { data: data.into(), end: end.map(|end| at + line + end + 4) });
        }
        let chunk = &rest[line + 2..];
        data.extend_from_slice(&chunk[..size.min(chunk.len())]);
        match size.checked_add(2) {
            Some(whole) if whole <= chunk.len() => at += line + 2 + whole,
            _ => return Ok(Body { data: data.into(), end: None }),
        }
    }
}
