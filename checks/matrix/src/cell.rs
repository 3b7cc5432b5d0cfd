//! The dimensions of the matrix.

use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Security {
    Plain,
    Tls,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Protocol {
    Http1,
    Http2,
    /// gRPC with one message in each direction.
    Unary,
    /// gRPC with two messages in each direction.
    Streaming,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Library {
    HyperUtil,
    Reqwest,
    Tonic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stack {
    /// The client alone, which only `--beside` runs.
    Bare,
    Retry,
    Hedge,
    Standard,
    Endpoints,
}

/// The kind of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    PutStreamed,
    Post,
    PostWithKey,
    /// A gRPC call that may not be repeated.
    Unmarked,
    /// A gRPC call that is marked as repeatable.
    Marked,
}

/// The way in which a connection or a message ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Reset,
    Close,
    Stall,
    /// Bytes that are neither TLS nor HTTP.
    Garbage,
}

/// The treatment of every request until the server recovers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// No server listens.
    Down,
    /// The connection fails before a byte has come from the server. With TLS, that is in the handshake.
    Accept(How),
    /// The server sends the alert internal_error.
    Alert,
    /// The connection is reset in the middle of the server's first record.
    CutHandshake,
    /// A record of the handshake cannot be read.
    BrokenHandshake,
    /// The certificate is for another name.
    Certificate,
    /// The server fails when it has read a part of the head, or, over HTTP/2, the whole head.
    Request(How),
    /// The server fails when it has read a part of the body.
    Upload(How),
    /// The server fails when it has read the whole request.
    Whole(How),
    /// The server fails in the middle of the response's head.
    Head(How),
    /// The server fails in the middle of the response's body.
    Body(How),
    /// The response is shorter than its content-length.
    WrongLength,
    Busy,
    /// A 503 before the body was read.
    EarlyBusy,
    Throttled,
    NotFound,
    /// A 103, then the usual response.
    EarlyHints,
    RefusedStream,
    GoAwayBelow,
    GoAwayAbove,
    /// RST_STREAM with INTERNAL_ERROR in place of a response.
    ResetStream,
    /// RST_STREAM with INTERNAL_ERROR after the head.
    ResetAfterHead,
    Unavailable,
    Exhausted,
    DeadlineExceeded,
    Internal,
    /// A message without a status.
    NoTrailers,
    /// A message, then UNAVAILABLE.
    LateUnavailable,
}

const HOWS: [How; 4] = [How::Reset, How::Close, How::Stall, How::Garbage];

/// One cell of the matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Cell {
    pub(crate) security: Security,
    pub(crate) protocol: Protocol,
    pub(crate) library: Library,
    pub(crate) stack: Stack,
    /// The number of calls that are made at once.
    pub(crate) calls: usize,
    pub(crate) kind: Kind,
    pub(crate) fault: Fault,
}

impl Protocol {
    pub(crate) fn is_grpc(self) -> bool {
        matches!(self, Self::Unary | Self::Streaming)
    }

    fn kinds(self) -> &'static [Kind] {
        match self.is_grpc() {
            true => &[Kind::Unmarked, Kind::Marked],
            false => &[Kind::Get, Kind::PutStreamed, Kind::Post, Kind::PostWithKey],
        }
    }

    fn libraries(self) -> &'static [Library] {
        match self.is_grpc() {
            // reqwest's requests have no gRPC, and a channel of tonic has nothing else.
            true => &[Library::HyperUtil, Library::Tonic],
            false => &[Library::HyperUtil, Library::Reqwest],
        }
    }
}

impl Fault {
    fn all(security: Security, protocol: Protocol) -> Vec<Self> {
        let mut all = vec![Self::Down];
        if security == Security::Tls {
            all.extend([Self::Alert, Self::CutHandshake, Self::BrokenHandshake, Self::Certificate]);
        }
        for how in HOWS {
            all.extend([Self::Accept(how), Self::Request(how), Self::Upload(how), Self::Whole(how)]);
            if how != How::Garbage {
                all.extend([Self::Head(how), Self::Body(how)]);
            }
        }
        if protocol != Protocol::Http1 {
            all.extend([Self::RefusedStream, Self::GoAwayBelow, Self::GoAwayAbove, Self::ResetStream]);
            all.push(Self::ResetAfterHead);
        }
        match protocol.is_grpc() {
            true => {
                all.extend([Self::Unavailable, Self::Exhausted, Self::DeadlineExceeded, Self::Internal]);
                all.extend([Self::NoTrailers, Self::LateUnavailable]);
            }
            false => {
                all.extend([Self::WrongLength, Self::Busy, Self::EarlyBusy, Self::Throttled, Self::NotFound]);
                all.push(Self::EarlyHints);
            }
        }
        all
    }
}

impl Cell {
    pub(crate) fn all() -> Vec<Self> {
        let mut all = Vec::new();
        for security in [Security::Plain, Security::Tls] {
            for protocol in [Protocol::Http1, Protocol::Http2, Protocol::Unary, Protocol::Streaming] {
                for library in protocol.libraries().iter().copied() {
                    for stack in [Stack::Retry, Stack::Hedge, Stack::Standard, Stack::Endpoints] {
                        for calls in [1, 20, 200] {
                            for kind in protocol.kinds().iter().copied() {
                                let faults = Fault::all(security, protocol).into_iter();
                                all.extend(faults.map(|fault| Self {
                                    security,
                                    protocol,
                                    library,
                                    stack,
                                    calls,
                                    kind,
                                    fault,
                                }));
                            }
                        }
                    }
                }
            }
        }
        all
    }

    /// Returns `true` if a hedge layer may send the request more than once.
    pub(crate) fn is_hedged(&self) -> bool {
        self.stack == Stack::Hedge && (self.kind == Kind::Get || self.protocol.is_grpc())
    }

    /// Returns `true` if an attempt ends only when time passes.
    pub(crate) fn stalls(&self) -> bool {
        matches!(
            self.fault,
            Fault::Accept(How::Stall)
                | Fault::Request(How::Stall)
                | Fault::Upload(How::Stall)
                | Fault::Whole(How::Stall)
                | Fault::Head(How::Stall)
        )
    }

    /// Returns `true` if all attempts use a connection that stalls for ever.
    pub(crate) fn is_stuck(&self) -> bool {
        self.fault == Fault::Accept(How::Stall) && self.protocol != Protocol::Http1
    }

    /// Returns the reason if this cell cannot be run.
    pub(crate) fn left_out(&self) -> Option<&'static str> {
        match self.fault {
            Fault::Upload(_) if self.kind == Kind::Get => Some("a GET has no body in whose middle to fail"),
            _ if self.stalls() && self.stack == Stack::Hedge && !self.is_hedged() => {
                Some("a call that is not hedged has no time limit, so it never ends")
            }
            _ if self.is_stuck() && self.stack == Stack::Hedge => {
                Some("a hedge over the connection that stalls never ends")
            }
            Fault::Head(How::Stall) if self.protocol != Protocol::Http1 && self.stack == Stack::Hedge => {
                Some("the hedge uses the connection that half a frame has broken")
            }
            Fault::Body(How::Stall) if self.protocol.is_grpc() => {
                Some("the caller's own deadline ends a response that stalls")
            }
            _ => None,
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { security, protocol, library, stack, calls, kind, fault } = self;
        write!(f, "{security:?} × {protocol:?} × {library:?} × {stack:?} × {calls} × {kind:?} × {fault:?}")
    }
}
