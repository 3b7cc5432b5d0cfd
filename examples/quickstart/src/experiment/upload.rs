//! The request bodies: none for a GET, one piece for a POST. A PUT has a stream of pieces, which
//! are made while it is sent, without a known length.

use std::convert::Infallible;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame};

use super::script::Kind;

/// The body of one request. It cannot be replayed by itself, because reading consumes it.
#[derive(Debug, Clone)]
pub(crate) struct Upload {
    call: u32,
    pieces: Range<u32>,
}

impl Upload {
    pub(crate) fn new(call: u32, kind: Kind) -> Self {
        let pieces = match kind {
            Kind::Get => 0..0,
            Kind::Put => 0..16,
            Kind::PostWithKey | Kind::Post => 0..1,
        };
        Self { call, pieces }
    }

    /// Returns `true` if `received` equals this whole body.
    pub(crate) fn equals(self, received: &[u8]) -> bool {
        let call = self.call;
        self.pieces.flat_map(|number| piece(call, number)).eq(received.iter().copied())
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let call = self.call;
        Poll::Ready(self.pieces.next().map(|number| Ok(Frame::data(piece(call, number)))))
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }
}

/// Returns about a kilobyte that is unique to this call and place.
fn piece(call: u32, number: u32) -> Bytes {
    Bytes::from(format!("call {call}, piece {number}\n").repeat(50))
}
