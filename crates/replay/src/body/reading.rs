//! The `Body` implementation that a client polls: frames, end and size hint.

use std::fmt;
use std::pin::Pin;
use std::task::Context;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use sync_wrapper::SyncWrapper;

use super::{Inner, InnerProjected, ReplayBody};
use crate::error::BoxError;
use crate::progress::{End, Length, Polled};

impl<B: Body<Data = Bytes, Error: Into<BoxError>>> Body for ReplayBody<B> {
    type Data = Bytes;
    type Error = BoxError;

    #[inline]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match self.project().inner.project() {
            InnerProjected::Complete { complete } => complete.poll_frame(),
            InnerProjected::Once { body, rest, end } => poll_once(body, rest, end, cx),
            InnerProjected::Shared { reader } => reader.poll_frame(cx),
            InnerProjected::Upload { reader } => reader.poll_frame(cx),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.note_look();
        self.at_end()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.note_look();
        self.rest()
    }
}

impl<B> ReplayBody<B> {
    /// Records that a client has inspected an empty body, as clients do before sending it.
    #[inline]
    fn note_look(&self) {
        if let Inner::Complete { complete } = &self.inner
            && let Some(noted) = complete.noted()
        {
            noted.note_look();
        }
    }

    #[inline]
    fn at_end(&self) -> bool {
        match &self.inner {
            Inner::Complete { complete } => complete.is_end_stream(),
            Inner::Once { end, .. } => end.at_end(),
            Inner::Shared { reader } => reader.body_end().at_end(),
            Inner::Upload { reader } => reader.is_end_stream(),
        }
    }

    #[inline]
    fn rest(&self) -> SizeHint {
        match &self.inner {
            Inner::Complete { complete } => complete.size_hint(),
            Inner::Once { rest, .. } => rest.hint(),
            Inner::Shared { reader } => reader.size_hint(),
            Inner::Upload { reader } => reader.size_hint(),
        }
    }
}

/// Polls a passed-through body. Not inlined, so that other kinds of body do not reserve stack space for it.
#[inline(never)]
fn poll_once<B>(body: Pin<&mut SyncWrapper<B>>, rest: &mut Length, end: &mut End, cx: &mut Context<'_>) -> Polled
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    end.poll_source(body.get_pin_mut(), cx, |data| *rest = rest.after(data), || ())
}

impl<B> fmt::Debug for ReplayBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.inner {
            Inner::Complete { complete } => complete.kind(),
            Inner::Once { .. } => "passed through",
            Inner::Shared { .. } => "kept",
            Inner::Upload { .. } => "opened again",
        };
        f.debug_struct("ReplayBody")
            .field("kind", &kind)
            .field("rest", &self.rest())
            .field("done", &self.at_end())
            .finish_non_exhaustive()
    }
}
