//! The server's handling of one request.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::ledger::Exchange;
use crate::script::{Fault, Sealed};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");

const REFUSED_STREAM: u32 = 7;

fn grpc_status(code: u32) -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), code.into())])
}

/// The server's handling of one request: what it reads, how it responds, and how the exchange ends.
///
/// The default reads the whole request and responds with 200 and an empty body.
///
/// ```
/// use http::StatusCode;
/// use reattempt_faults::{End, Read, Reply};
///
/// let early = Reply::status(StatusCode::SERVICE_UNAVAILABLE).read(Read::Head);
/// let lost = Reply::status(StatusCode::OK).body("receipt").cut(0).end_with(End::Reset);
/// # drop((early, lost));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(try_from = "crate::words::RawReply"))]
#[must_use]
pub struct Reply {
    pub(super) read: Read,
    pub(super) informational: Vec<StatusCode>,
    pub(super) response: Response,
    /// Raw bytes instead of a response.
    pub(super) raw: Option<Bytes>,
    pub(super) cut: usize,
    pub(super) end: End,
    pub(super) carried_out: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Response {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
    pub(super) trailers: Option<HeaderMap>,
    pub(super) content_length: Option<u64>,
}

/// The part of a request that is read before the response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Read {
    /// This many bytes, or the whole request if it is shorter. A reply with this value is chosen before the request is
    /// known, so its step cannot select a call.
    Bytes(usize),
    /// The head.
    Head,
    /// The head and at least this many bytes of the body, or the whole request if the body is shorter.
    Body(usize),
    /// The whole request.
    #[default]
    Whole,
}

/// The way in which an exchange ends, after the response or a part of the response is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "toml", derive(serde::Deserialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum End {
    /// The rest of the request is read, and the connection stays open for the next request.
    #[default]
    Open,
    /// The server closes the connection. The operating system resets it if unread bytes remain.
    Close,
    /// The server resets the connection.
    Reset,
    /// The server sends RST_STREAM with this code, on HTTP/2 only. 7 is REFUSED_STREAM, which proves that the request
    /// was not carried out. With 0 (NO_ERROR), the whole response is sent first, and the client stops its upload.
    ResetStream(u32),
    /// The server sends GOAWAY with this code, on HTTP/2 only. It is sent before the response and includes all streams
    /// that have arrived, so the response is valid.
    GoAwayAbove(u32),
    /// The server sends GOAWAY with this code and no response, on HTTP/2 only. It excludes this stream and all later
    /// ones, which proves that they were not carried out. The replies to later streams are not sent.
    GoAwayBelow(u32),
    /// The server stops writing. It reads and discards everything until the client disconnects.
    Stall,
}

impl Default for Reply {
    fn default() -> Self {
        Self::status(StatusCode::OK)
    }
}

impl Reply {
    /// Creates a reply with this status and an empty body.
    pub fn status(status: StatusCode) -> Self {
        Self {
            read: Read::Whole,
            informational: Vec::new(),
            response: Response { status, ..Response::default() },
            raw: None,
            cut: usize::MAX,
            end: End::Open,
            carried_out: None,
        }
    }

    /// Creates a reply that sends these bytes instead of a response. They need not be valid.
    pub fn raw(bytes: impl Into<Bytes>) -> Self {
        Self { raw: Some(bytes.into()), ..Self::default() }
    }

    /// Creates a reply that resets the connection after reading the request, without a response.
    pub fn reset() -> Self {
        Self::default().cut(0).end_with(End::Reset)
    }

    /// Creates a reply that refuses the stream with REFUSED_STREAM after the request was read, on HTTP/2 only.
    pub fn refused_stream() -> Self {
        Self::default().cut(0).end_with(End::ResetStream(REFUSED_STREAM))
    }

    /// Creates the reply for a stream that an earlier GOAWAY has excluded.
    #[cfg(feature = "http2")]
    pub(super) fn excluded() -> Self {
        Self::default().cut(0).end_with(End::GoAwayBelow(0))
    }

    /// Creates a gRPC response with this message and the status OK in its trailers.
    pub fn grpc(message: impl AsRef<[u8]>) -> Self {
        let message = message.as_ref();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX).to_be_bytes();
        let body = [&[0][..], &length, message].concat();
        Self::default().header(CONTENT_TYPE, GRPC).body(body).trailers(grpc_status(0))
    }

    /// Creates a gRPC response that consists of a head with this status.
    pub fn grpc_error(code: u32) -> Self {
        let mut reply = Self::default().header(CONTENT_TYPE, GRPC);
        reply.response.headers.extend(grpc_status(code));
        reply
    }

    /// Ends a gRPC response with this status in its trailers, after the message.
    pub fn grpc_status(self, code: u32) -> Self {
        self.trailers(grpc_status(code))
    }

    /// Removes the trailers. A gRPC response then ends without a status.
    pub fn without_trailers(mut self) -> Self {
        self.response.trailers = None;
        self
    }

    /// Creates a reply that is never sent: the exchange stalls.
    pub fn stall() -> Self {
        Self::default().cut(0).end_with(End::Stall)
    }

    /// Sets the part of the request that is read before the response. Default: the whole request.
    pub fn read(mut self, read: Read) -> Self {
        self.read = read;
        self
    }

    /// Adds an informational response, such as 103, before the response. This can be called several times.
    pub fn informational(mut self, status: StatusCode) -> Self {
        self.informational.push(status);
        self
    }

    /// Adds a header. It has no effect on a raw reply.
    pub fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.response.headers.append(name, value);
        self
    }

    /// Sets the body.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.response.body = body.into();
        self
    }

    /// Sets the trailers. With HTTP/1.1, the body is then sent in one chunk.
    pub fn trailers(mut self, trailers: HeaderMap) -> Self {
        self.response.trailers = Some(trailers);
        self
    }

    /// Sets a `content-length` that differs from the length of the body.
    pub fn content_length(mut self, bytes: u64) -> Self {
        self.response.content_length = Some(bytes);
        self
    }

    /// Sends only the first `bytes` bytes of the response, without its end.
    ///
    /// If `bytes` is 0, nothing is sent. With HTTP/1.1, the bytes of the head are counted too. With HTTP/2, only the
    /// bytes of the body are counted, and the head is sent whole.
    pub fn cut(mut self, bytes: usize) -> Self {
        self.cut = bytes;
        self
    }

    /// Sets how the exchange ends. Default: [`End::Open`].
    pub fn end_with(mut self, end: End) -> Self {
        self.end = end;
        self
    }

    /// Sets whether the request's effect is recorded as carried out, regardless of the rule at
    /// [`Arrival::carried_out`](crate::Arrival).
    pub fn carried_out(mut self, carried_out: bool) -> Self {
        self.carried_out = Some(carried_out);
        self
    }

    pub(super) fn is_chosen_early(&self) -> bool {
        matches!(self.read, Read::Bytes(_))
    }

    pub(super) fn needs_http2(&self) -> bool {
        matches!(self.end, End::ResetStream(_) | End::GoAwayAbove(_) | End::GoAwayBelow(_))
    }

    #[cfg(feature = "http2")]
    pub(super) fn needs_http1(&self) -> bool {
        self.is_chosen_early() || !self.informational.iter().all(StatusCode::is_informational)
    }

    /// Returns `true` if the response is sent completely.
    #[cfg(feature = "http2")]
    pub(super) fn sends_end(&self) -> bool {
        let is_reset = matches!(self.end, End::ResetStream(1..) | End::GoAwayBelow(_));
        self.cut == usize::MAX && self.raw.is_none() && !is_reset
    }

    /// Returns `true` if the response proves that the request was not carried out.
    fn refuses(&self) -> bool {
        let is_sent = self.raw.is_none() && self.cut > 0;
        let excluded = matches!(self.end, End::GoAwayBelow(_) | End::ResetStream(REFUSED_STREAM));
        excluded || is_sent && matches!(self.response.status.as_u16(), 421 | 425 | 429)
    }

    /// Records the reply in the ledger.
    pub(super) fn record(&self, exchange: &Exchange) {
        if let Some(carried_out) = self.carried_out {
            exchange.carried_out(carried_out);
        } else if self.refuses() {
            exchange.carried_out(false);
        } else if matches!(self.read, Read::Head | Read::Body(_)) {
            exchange.carried_out(true);
        }
        exchange.answer(self.words());
    }

    /// Returns the response as text, for the ledger.
    fn words(&self) -> String {
        let answer = match &self.raw {
            _ if self.cut == 0 || matches!(self.end, End::GoAwayBelow(_)) => None,
            Some(raw) => Some(format!("{} raw bytes", raw.len())),
            None => Some(self.response.status.as_str().to_owned()),
        };
        let cut = (1..usize::MAX).contains(&self.cut).then(|| format!("cut at {} B", self.cut));
        let end = match self.end {
            End::Open => None,
            end => Some(format!("{end:?}").to_lowercase()),
        };
        let parts: Vec<_> = [answer, cut, end].into_iter().flatten().collect();
        parts.join(", ")
    }
}

impl Sealed for Reply {}

impl Fault for Reply {}
