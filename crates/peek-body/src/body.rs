//! A response body of which a part has been read ahead.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fmt;
use std::io::IoSlice;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use reattempt_replay::ReplayCharge;

/// A response body of which a part may have been read ahead.
///
/// It returns the frames that were read, then the inner body's error or end, or the rest of the inner body. Frames,
/// trailers and errors are those of the inner body, in the same order.
pub struct PeekedBody<B: Body> {
    /// Most bodies have one frame.
    first: Option<Frame<B::Data>>,
    rest: VecDeque<Frame<B::Data>>,
    /// The bytes of the frames that were read.
    held: u64,
    end: End<B::Error>,
    charge: Option<ReplayCharge>,
    inner: B,
}

/// The end of the inner body, once it has been read.
enum End<E> {
    Unread,
    Broke(E),
    Over,
}

/// A step of reading ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A frame was read, and more may follow.
    Frame,
    /// The body has ended.
    Whole,
    /// The body broke.
    Broke,
}

/// The frames are not pinned.
impl<B: Body + Unpin> Unpin for PeekedBody<B> {}

impl<B: Body> PeekedBody<B> {
    pub(crate) fn unread(inner: B) -> Self {
        Self { first: None, rest: VecDeque::new(), held: 0, end: End::Unread, charge: None, inner }
    }

    /// Returns the number of bytes that are held.
    pub(crate) fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of frames that are held.
    pub(crate) fn frames(&self) -> usize {
        usize::from(self.first.is_some()) + self.rest.len()
    }

    /// Returns the error that broke the body.
    pub(crate) fn error(&self) -> Option<&B::Error> {
        match &self.end {
            End::Broke(error) => Some(error),
            End::Unread | End::Over => None,
        }
    }

    /// Returns the charge for the frames that are held.
    pub(crate) fn charge_mut(&mut self) -> &mut Option<ReplayCharge> {
        &mut self.charge
    }

    /// Returns the data of all frames that are held, or `None` if a frame has too many parts.
    pub(crate) fn bytes(&self) -> Option<Cow<'_, [u8]>> {
        let mut data =
            self.first.iter().chain(&self.rest).filter_map(Frame::data_ref).filter(|data| data.has_remaining());
        let Some(first) = data.next() else { return Some(Cow::Borrowed(&[])) };
        let next = data.next();
        if next.is_none() && first.chunk().len() == first.remaining() {
            return Some(Cow::Borrowed(first.chunk()));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(self.held).unwrap_or(0));
        let is_whole = [first].into_iter().chain(next).chain(data).all(|data| append(&mut bytes, data));
        is_whole.then_some(Cow::Owned(bytes))
    }

    fn pop(&mut self) -> Option<Frame<B::Data>> {
        let frame = self.first.take().or_else(|| self.rest.pop_front())?;
        self.held = self.held.saturating_sub(length_of(&frame));
        if self.rest.is_empty() {
            self.charge = None;
        }
        Some(frame)
    }
}

impl<B: Body + Unpin> PeekedBody<B> {
    /// Reads the next frame, the error or the end, and keeps it.
    pub(crate) fn poll_ahead(&mut self, cx: &mut Context<'_>) -> Poll<Step> {
        Poll::Ready(match ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(frame)) => {
                self.held += length_of(&frame);
                match self.first {
                    None => self.first = Some(frame),
                    Some(_) => self.rest.push_back(frame),
                }
                if self.inner.is_end_stream() { Step::Whole } else { Step::Frame }
            }
            Some(Err(error)) => {
                self.end = End::Broke(error);
                Step::Broke
            }
            None => {
                self.end = End::Over;
                Step::Whole
            }
        })
    }
}

/// Returns the length of the data in a frame.
pub(crate) fn length_of<D: Buf>(frame: &Frame<D>) -> u64 {
    frame.data_ref().map_or(0, |data| data.remaining() as u64)
}

/// Copies data without reading it. Returns `false` if it has too many parts.
fn append(bytes: &mut Vec<u8>, data: &impl Buf) -> bool {
    let mut parts = [IoSlice::new(&[]); 16];
    let (before, filled) = (bytes.len(), data.chunks_vectored(&mut parts));
    for part in &parts[..filled] {
        bytes.extend_from_slice(part);
    }
    bytes.len() - before == data.remaining()
}

impl<B: Body + Unpin> Body for PeekedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.get_mut();
        if let Some(frame) = this.pop() {
            return Poll::Ready(Some(Ok(frame)));
        }
        match this.end {
            End::Unread => Pin::new(&mut this.inner).poll_frame(cx),
            End::Over => Poll::Ready(None),
            End::Broke(_) => match std::mem::replace(&mut this.end, End::Unread) {
                End::Broke(error) => Poll::Ready(Some(Err(error))),
                End::Unread | End::Over => Poll::Ready(None),
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_read = self.frames() == 0 && self.error().is_none();
        is_read && (matches!(self.end, End::Over) || self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let rest = match self.end {
            End::Over => SizeHint::with_exact(0),
            End::Unread | End::Broke(_) => self.inner.size_hint(),
        };
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(self.held));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(self.held));
        }
        hint
    }
}

/// Creates a body of which nothing was read.
impl<B: Body + Default> Default for PeekedBody<B> {
    fn default() -> Self {
        Self::unread(B::default())
    }
}

impl<B: Body> fmt::Debug for PeekedBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeekedBody")
            .field("held", &self.held)
            .field("frames", &self.frames())
            .field("broke", &self.error().is_some())
            .finish_non_exhaustive()
    }
}
