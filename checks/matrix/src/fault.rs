//! The kit's values for each fault.

use bytes::Bytes;
use http::StatusCode;
use reattempt_faults::{Break, End, Read, Reply, WireFault};

use crate::cell::{Cell, Fault, How, Protocol};

const GARBAGE: &[u8] = b"220 mail.example ESMTP\r\n\r\n";

/// The first half of a frame's head.
const HALF_FRAME: &[u8] = &[0, 0, 10, 1, 4];

/// The end of a gRPC message's prefix, or of a body's first half.
const HALF: usize = 4;

/// `HTTP/1.1 200 OK` and a length of one digit.
const HTTP1_HEAD: usize = 38;

/// A part of every request body.
const PART: usize = 6;

/// The text of every healthy response.
pub(crate) const DONE: &str = "done";

/// Returns the reply of a server that has recovered.
pub(crate) fn healthy(protocol: Protocol) -> Reply {
    match protocol {
        Protocol::Http1 | Protocol::Http2 => Reply::default().body(DONE),
        Protocol::Unary => Reply::grpc(DONE),
        Protocol::Streaming => {
            let message = [&[0, 0, 0, 0, 4], DONE.as_bytes()].concat();
            Reply::grpc(DONE).body(message.repeat(2))
        }
    }
}

/// Returns the fault of every connection to the server, if there is one.
pub(crate) fn wire(fault: Fault) -> Option<WireFault> {
    match fault {
        Fault::Accept(How::Reset) => Some(WireFault::Refuse),
        Fault::Accept(How::Close) => Some(WireFault::read(0, Break::Close)),
        Fault::Accept(How::Stall) => Some(WireFault::TimeOut),
        Fault::Accept(How::Garbage) => Some(WireFault::read(0, Break::Garbage(Bytes::from_static(GARBAGE)))),
        Fault::Alert => Some(WireFault::read(0, Break::tls_alert(80))),
        Fault::CutHandshake => Some(WireFault::read(100, Break::Reset)),
        Fault::BrokenHandshake => Some(WireFault::read(200, Break::broken_record())),
        _ => None,
    }
}

/// Returns the reply to every request, if the server has a fault.
pub(crate) fn reply(cell: &Cell) -> Option<Reply> {
    let is_http1 = cell.protocol == Protocol::Http1;
    let status = |code| Reply::status(code);
    let usual = healthy(cell.protocol);
    Some(match cell.fault {
        Fault::Down | Fault::Accept(_) | Fault::Alert | Fault::CutHandshake | Fault::BrokenHandshake => return None,
        Fault::Certificate => return None,
        // A stall is recognised by the arrival of the head.
        Fault::Request(How::Stall) => ending(usual.cut(0), How::Stall).read(Read::Head),
        Fault::Request(how) => ending(usual.cut(0), how).read(if is_http1 { Read::Bytes(20) } else { Read::Head }),
        Fault::Upload(how) => ending(usual.cut(0), how).read(Read::Body(PART)),
        Fault::Whole(how) => ending(usual.cut(0), how),
        Fault::Head(how) if is_http1 => ending(usual.cut(12), how),
        Fault::Head(how) => ending(Reply::raw(HALF_FRAME), how),
        Fault::Body(how) => {
            let cut = if is_http1 { HTTP1_HEAD + HALF } else { HALF };
            let long = if cell.protocol.is_grpc() { Reply::grpc("halfhalf") } else { usual.body("halfhalf") };
            ending(long.cut(cut), how)
        }
        // Over HTTP/2 the end of the stream contradicts the length.
        Fault::WrongLength if is_http1 => usual.body("half").content_length(8).end_with(End::Close),
        Fault::WrongLength => usual.body("half").content_length(8),
        Fault::Busy => status(StatusCode::SERVICE_UNAVAILABLE),
        Fault::EarlyBusy => status(StatusCode::SERVICE_UNAVAILABLE).read(Read::Head),
        Fault::Throttled => status(StatusCode::TOO_MANY_REQUESTS),
        Fault::NotFound => status(StatusCode::NOT_FOUND),
        Fault::EarlyHints => usual.informational(StatusCode::EARLY_HINTS),
        Fault::RefusedStream => Reply::refused_stream(),
        Fault::GoAwayBelow => Reply::default().end_with(End::GoAwayBelow(0)),
        Fault::GoAwayAbove => usual.end_with(End::GoAwayAbove(0)),
        Fault::ResetStream => Reply::default().cut(0).end_with(End::ResetStream(2)),
        Fault::ResetAfterHead => usual.cut(1).end_with(End::ResetStream(2)),
        // The server may have carried out the call before it sent the status.
        Fault::Unavailable => Reply::grpc_error(14),
        Fault::Exhausted => Reply::grpc_error(8),
        Fault::DeadlineExceeded => Reply::grpc_error(4),
        Fault::Internal => Reply::grpc_error(13),
        Fault::NoTrailers => usual.without_trailers(),
        Fault::LateUnavailable => usual.grpc_status(14),
    })
}

fn ending(reply: Reply, how: How) -> Reply {
    match how {
        How::Reset => reply.end_with(End::Reset),
        How::Close => reply.end_with(End::Close),
        How::Stall => reply.end_with(End::Stall),
        How::Garbage => Reply::raw(GARBAGE),
    }
}
