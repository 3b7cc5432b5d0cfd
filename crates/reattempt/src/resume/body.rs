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
use super::{BrokenOff, ResumePoint, Source};

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
    /// Wrapped because a body must be `Sync`, whereas services, futures and delays need not be.
    resumption: SyncWrapper<Box<Resumption<R, Backoff, B>>>,
}

/// The result of polling a part.
enum Next<F> {
    /// A frame to return.
    Frame(F),
    /// A frame to return, after which the body is no longer resumable.
    Whole(F),
    /// The end of the body, with an error if it failed.
    End(Option<BoxError>),
    /// A break: bytes are missing.
    Break(Break),
}

impl<R: Source, Backoff: Schedule, B> ResumeBody<R, Backoff, B> {
    /// Creates a body that is passed through unchanged.
    pub(super) fn whole(body: R::Body) -> Self {
        Self { part: Some(body), resumable: None }
    }

    /// Creates a resumable body, unless its length shows that a decoder or another adapter changed it.
    pub(super) fn new(body: R::Body, point: ResumePoint, resumption: Resumption<R, Backoff, B>) -> Self {
        let fits = body.size_hint().exact().is_none_or(|length| length == point.total());
        if !fits || point.missing() == 0 || resumption.is_forbidden() {
            return Self::whole(body);
        }
        let resumption = SyncWrapper::new(Box::new(resumption));
        Self { part: Some(body), resumable: Some(Resumable { point, is_first: true, resumption }) }
    }
}

impl<R: Source, Backoff: Schedule, B: Budget> Resumable<R, Backoff, B> {
    fn read<F: Buf>(&mut self, frame: Option<Result<Frame<F>, BoxError>>) -> Next<Frame<F>> {
        let is_complete = self.point.missing() == 0;
        match frame {
            Some(Ok(frame)) => match frame.data_ref().map(Buf::remaining) {
                Some(length) => self.read_data(frame, u64::try_from(length).unwrap_or(u64::MAX)),
                None if !is_complete => Next::Break(self.end_early()),
                // Only the first response's trailers get here, because a later part is dropped once it is complete.
                None => Next::Frame(frame),
            },
            // No bytes are missing, so there is nothing to request.
            Some(Err(error)) if is_complete => Next::End(Some(error)),
            Some(Err(error)) => Next::Break(Break::Error(error)),
            None if is_complete => Next::End(None),
            None => Next::Break(self.end_early()),
        }
    }

    fn read_data<F>(&mut self, frame: F, length: u64) -> Next<F> {
        match self.point.receive(length) {
            Ok(()) => {
                self.resumption.get_mut().receive(length, self.point.missing() == 0);
                Next::Frame(frame)
            }
            // No parts were joined yet, so the caller gets exactly what the server sends.
            Err(_) if self.is_first => Next::Whole(frame),
            Err(too_long) => Next::End(Some(self.resumption.get_mut().give_up(&too_long))),
        }
    }

    fn end_early(&self) -> Break {
        Break::Early(BrokenOff { received: self.point.received(), total: self.point.total() })
    }
}

impl<R: Source, Backoff: Schedule, B: Budget> Body for ResumeBody<R, Backoff, B> {
    type Data = <R::Body as Body>::Data;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Self::Data>, BoxError>>> {
        let mut this = self.project();
        loop {
            let resumed = if let Some(part) = this.part.as_mut().as_pin_mut() {
                let frame = ready!(part.poll_frame(cx)).map(|frame| frame.map_err(Into::into));
                let Some(resumable) = this.resumable else { return Poll::Ready(frame) };
                match resumable.read(frame) {
                    Next::Frame(frame) => {
                        // All bytes were received. The server may never end this part, so it is not read further.
                        if !resumable.is_first && resumable.point.missing() == 0 {
                            this.part.set(None);
                            *this.resumable = None;
                        }
                        return Poll::Ready(Some(Ok(frame)));
                    }
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
                }
            } else if let Some(resumable) = this.resumable {
                ready!(resumable.resumption.get_mut().poll_part(&resumable.point, cx)).map(Some)
            } else {
                return Poll::Ready(None);
            };
            match (resumed, &mut *this.resumable) {
                (Ok(part), Some(resumable)) => {
                    resumable.is_first = false;
                    this.part.set(part);
                }
                (Ok(_), None) => return Poll::Ready(None),
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
