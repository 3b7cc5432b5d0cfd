//! The response body that is resumed after it breaks.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use reattempt_core::{Budget, Schedule};
use sync_wrapper::SyncWrapper;
use tower::BoxError;

use super::resumption::{Break, Resumption};
use super::{BrokenOff, Mismatch, ResumePoint, Source};

pin_project! {
    /// The body of a response returned through a [`ResumeLayer`](super::ResumeLayer).
    ///
    /// A resumable body ends without an error only after `Content-Length` bytes. No frame is saved, so the memory
    /// needed does not depend on the length. After an error, the body has ended.
    ///
    /// # Cancel safety
    /// Dropping the body drops the current response or cancels the resume in flight.
    pub struct ResumeBody<R: Source, Backoff: Schedule, B> {
        // `None` between two parts and after the end.
        #[pin]
        part: Option<R::Body>,
        // `None` if the body cannot be resumed. Its frames are then returned unchanged.
        resumable: Option<Resumable<R, Backoff, B>>,
    }
}

/// The state of a body that can be resumed.
struct Resumable<R: Source, Backoff: Schedule, B> {
    point: ResumePoint,
    /// `true` for the body of the first response.
    is_first: bool,
    /// The number of bytes at the start of the current part that the caller has already read.
    skip: u64,
    /// The number of bytes that the current part has after them.
    length: u64,
    /// The number of those that are not read.
    left: u64,
    /// Wrapped because a body must be `Sync`, whereas services, futures and delays need not be.
    resumption: SyncWrapper<Box<Resumption<R, Backoff, B>>>,
}

/// The result of polling a part.
enum Next<F> {
    /// A frame to return.
    Frame(F),
    /// Nothing to return: the frame is skipped.
    Skip,
    /// A frame to return, after which the body is no longer resumable.
    Whole(F),
    /// The end of the body, with an error if it failed.
    End(Option<BoxError>),
    /// A break: bytes of this part are missing.
    Break(Break),
    /// The end of a part that contained only the beginning of the rest.
    More,
}

impl<R: Source, Backoff: Schedule, B> ResumeBody<R, Backoff, B> {
    /// Creates a body that is passed through unchanged.
    pub(super) fn whole(body: R::Body) -> Self {
        Self { part: Some(body), resumable: None }
    }

    /// Creates a resumable body, unless its length shows that a decoder or another adapter changed it.
    pub(super) fn new(body: R::Body, point: ResumePoint, resumption: Resumption<R, Backoff, B>) -> Self {
        let fits = body.size_hint().exact().is_none_or(|length| length == point.length());
        if !fits || point.missing() == 0 || resumption.forbids(&point) {
            return Self::whole(body);
        }
        let (length, resumption) = (point.missing(), SyncWrapper::new(Box::new(resumption)));
        Self {
            part: Some(body),
            resumable: Some(Resumable { point, is_first: true, skip: 0, length, left: length, resumption }),
        }
    }
}

impl<R: Source, Backoff: Schedule, B: Budget> Resumable<R, Backoff, B> {
    fn read<F: Buf>(&mut self, frame: Option<Result<Frame<F>, BoxError>>) -> Next<Frame<F>> {
        let (is_whole_part, is_complete) = (self.left == 0, self.point.missing() == 0);
        match frame {
            Some(Ok(frame)) if frame.is_data() => self.read_data(frame),
            Some(Ok(_)) if !is_whole_part => Next::Break(self.end_early()),
            // Those of a later part describe only that part.
            Some(Ok(frame)) => {
                if self.is_first {
                    Next::Frame(frame)
                } else {
                    Next::Skip
                }
            }
            Some(Err(error)) if !is_complete => Next::Break(Break::Error(error)),
            Some(Err(error)) if self.resumption.get_mut().is_harmless(&*error) => self.end(),
            Some(Err(error)) => Next::End(Some(self.resumption.get_mut().fail(error))),
            None if is_complete => self.end(),
            None if is_whole_part => Next::More,
            None => Next::Break(self.end_early()),
        }
    }

    fn read_data<F: Buf>(&mut self, mut frame: Frame<F>) -> Next<Frame<F>> {
        let Some(data) = frame.data_mut() else { return Next::Frame(frame) };
        if self.skip > 0 {
            let known = data.remaining().min(usize::try_from(self.skip).unwrap_or(usize::MAX));
            data.advance(known);
            self.skip -= length_of(known);
            if data.remaining() == 0 {
                return Next::Skip;
            }
        }
        let length = length_of(data.remaining());
        if length > self.left {
            // No parts were joined yet, so the caller gets exactly what the server sends.
            if self.is_first {
                return Next::Whole(frame);
            }
            let found = (self.length - self.left).saturating_add(length);
            let too_long = Mismatch::Length { expected: self.length, found: Some(found) };
            return Next::End(Some(self.resumption.get_mut().give_up(too_long)));
        }
        self.left -= length;
        // A part is never longer than what is missing.
        let _ = self.point.receive(length);
        let is_last = self.point.missing() == 0;
        let resumption = self.resumption.get_mut();
        resumption.receive(length, is_last);
        #[cfg(feature = "digest")]
        if let Err(error) = resumption.check_digest(data, is_last) {
            return Next::End(Some(resumption.fail(error)));
        }
        Next::Frame(frame)
    }

    /// Waits for the end of a part. A complete part other than the first is not waited for without a limit, because the
    /// server may never end it.
    fn poll_end<F>(&mut self, cx: &mut Context<'_>) -> Poll<Next<F>> {
        if self.is_first || self.point.missing() > 0 {
            return Poll::Pending;
        }
        ready!(self.resumption.get_mut().poll_end(cx));
        Poll::Ready(self.end())
    }

    fn end<F>(&mut self) -> Next<F> {
        self.resumption.get_mut().complete();
        Next::End(None)
    }

    fn end_early(&self) -> Break {
        Break::Early(BrokenOff::at(&self.point))
    }
}

fn length_of(bytes: usize) -> u64 {
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

impl<R: Source, Backoff: Schedule, B: Budget> Body for ResumeBody<R, Backoff, B> {
    type Data = <R::Body as Body>::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        let mut this = self.project();
        loop {
            let resumed = if let Some(mut part) = this.part.as_mut().as_pin_mut() {
                let frame = part.as_mut().poll_frame(cx).map(|frame| frame.map(|frame| frame.map_err(Into::into)));
                let Some(resumable) = this.resumable else { return frame };
                let next = match frame {
                    Poll::Ready(frame) => resumable.read(frame),
                    Poll::Pending => ready!(resumable.poll_end(cx)),
                };
                match next {
                    Next::Frame(frame) => {
                        // The caller may not poll for the end.
                        if resumable.point.missing() == 0 && part.is_end_stream() {
                            resumable.resumption.get_mut().complete();
                        }
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    Next::Skip => continue,
                    Next::Whole(frame) => {
                        *this.resumable = None;
                        return Poll::Ready(Some(Ok(frame)));
                    }
                    Next::End(error) => {
                        this.part.set(None);
                        *this.resumable = None;
                        return Poll::Ready(error.map(Err));
                    }
                    Next::Break(broke) => {
                        // Dropped first, because it may hold a place that the resume needs.
                        this.part.set(None);
                        resumable.resumption.get_mut().break_off(broke).map(|()| None)
                    }
                    Next::More => {
                        this.part.set(None);
                        resumable.resumption.get_mut().go_on(&resumable.point).map(|()| None)
                    }
                }
            } else if let Some(resumable) = this.resumable {
                ready!(resumable.resumption.get_mut().poll_part(&resumable.point, cx)).map(Some)
            } else {
                return Poll::Ready(None);
            };
            match (resumed, &mut *this.resumable) {
                (Ok(Some((body, part))), Some(resumable)) => {
                    (resumable.is_first, resumable.skip) = (false, part.skip());
                    (resumable.length, resumable.left) = (part.length(), part.length());
                    this.part.set(Some(body));
                }
                // The next part is polled for.
                (Ok(_), _) => {}
                (Err(error), _) => {
                    *this.resumable = None;
                    return Poll::Ready(Some(Err(error)));
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let is_complete = self.resumable.as_ref().is_none_or(|resumable| resumable.point.missing() == 0);
        is_complete && self.part.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        match (&self.resumable, &self.part) {
            (Some(resumable), _) => SizeHint::with_exact(resumable.point.missing()),
            (None, Some(part)) => part.size_hint(),
            (None, None) => SizeHint::with_exact(0),
        }
    }
}

impl<R: Source<Body: fmt::Debug>, Backoff: Schedule, B> fmt::Debug for ResumeBody<R, Backoff, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let point = self.resumable.as_ref().map(|resumable| &resumable.point);
        f.debug_struct("ResumeBody").field("part", &self.part).field("point", &point).finish_non_exhaustive()
    }
}
