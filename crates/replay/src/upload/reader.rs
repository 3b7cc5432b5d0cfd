//! One reader of an upload, and what the readers of one call share: marks, and no bytes.

use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::source::Source;
use super::{UploadBody, UploadError};
use crate::error::ReplayError;
use crate::progress::{Polled, source_error};
use crate::source_watch::SourceWatch;
use crate::sync::Lock;
use crate::wakers::{ReaderId, Waiting, wake_all};

/// One reader of an upload.
pub(crate) struct UploadReader {
    body: UploadBody,
    marks: Arc<Lock<Marks>>,
    id: ReaderId,
}

/// The marks that the readers of one call share.
#[derive(Default)]
struct Marks {
    next_id: ReaderId,
    /// Readers with a lower id have been cancelled, except the one that cancelled them.
    cancelled_below: ReaderId,
    survivor: ReaderId,
    polled: bool,
    /// `true` if the body could not be opened or read.
    failed: bool,
    /// The readers that wait for their opened body.
    waiting: Vec<Waiting>,
    /// Created when the source is first watched.
    watch: Option<SourceWatch>,
}

impl Marks {
    fn has_cancelled(&self, reader: ReaderId) -> bool {
        reader < self.cancelled_below && reader != self.survivor
    }

    /// Records the result of a poll. Returns a waker that is no longer needed.
    fn record(&mut self, reader: ReaderId, is_pending: bool, cx: &Context<'_>) -> Option<Waiting> {
        if let Some(watch) = &self.watch {
            watch.set(is_pending);
        }
        let place = self.waiting.iter().position(|(id, _)| *id == reader);
        match (place, is_pending) {
            (Some(place), true) if self.waiting[place].1.will_wake(cx.waker()) => None,
            (Some(place), true) => Some(std::mem::replace(&mut self.waiting[place], (reader, cx.waker().clone()))),
            (Some(place), false) => Some(self.waiting.swap_remove(place)),
            (None, true) => {
                self.waiting.push((reader, cx.waker().clone()));
                None
            }
            (None, false) => None,
        }
    }
}

impl UploadReader {
    /// Creates the first reader.
    pub(crate) fn new(source: Arc<Source>) -> Self {
        let marks = Arc::new(Lock::new(Marks { next_id: 1, ..Marks::default() }));
        Self { body: UploadBody::unopened(source), marks, id: 0 }
    }

    pub(crate) fn try_clone(&self) -> Option<Self> {
        let mut marks = self.marks.lock();
        if marks.has_cancelled(self.id) {
            return None;
        }
        let id = marks.next_id;
        marks.next_id = id.checked_add(1)?;
        drop(marks);
        Some(Self { body: self.body.clone(), marks: Arc::clone(&self.marks), id })
    }

    pub(crate) fn is_replayable(&self) -> bool {
        !self.marks.lock().has_cancelled(self.id)
    }

    pub(crate) fn source_failed(&self) -> bool {
        self.marks.lock().failed
    }

    pub(crate) fn was_polled(&self) -> bool {
        self.marks.lock().polled
    }

    /// Records a poll if this is the only reader.
    pub(crate) fn note_if_alone(&self) {
        if Arc::strong_count(&self.marks) == 1 {
            self.marks.lock().polled = true;
        }
    }

    pub(crate) fn forget_polls(&self) {
        let mut marks = self.marks.lock();
        marks.polled = false;
        if let Some(watch) = &marks.watch {
            watch.set(false);
        }
    }

    pub(crate) fn watch_source(&self) -> SourceWatch {
        self.marks.lock().watch.get_or_insert_with(SourceWatch::new).clone()
    }

    pub(crate) fn cancel_others(&self) {
        let mut marks = self.marks.lock();
        if marks.has_cancelled(self.id) {
            return;
        }
        marks.cancelled_below = marks.next_id;
        marks.survivor = self.id;
        let waiting = std::mem::take(&mut marks.waiting);
        drop(marks);
        wake_all(waiting);
    }

    pub(crate) fn open_within(&self) -> Duration {
        self.body.source.open_within
    }

    /// Opens the body, unless it is open.
    pub(crate) fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), UploadError>> {
        self.body.poll_open(cx).map_err(|error| {
            self.fail();
            error
        })
    }

    fn fail(&self) {
        self.marks.lock().failed = true;
    }

    pub(crate) fn poll_frame(&mut self, cx: &mut Context<'_>) -> Polled {
        let mut marks = self.marks.lock();
        if marks.has_cancelled(self.id) {
            drop(marks);
            // A reader that has returned everything gets no error, because nothing is missing.
            let cut_off = !self.body.is_over();
            self.body.close();
            return Poll::Ready(cut_off.then(|| Err(ReplayError::Superseded.into())));
        }
        marks.polled = true;
        drop(marks);
        let polled: Poll<Option<Result<Frame<Bytes>, UploadError>>> = self.body.poll_next(cx);
        let freed = self.marks.lock().record(self.id, polled.is_pending(), cx);
        drop(freed);
        polled.map(|frame| {
            frame.map(|frame| {
                frame.map_err(|error| {
                    self.fail();
                    source_error(error).into()
                })
            })
        })
    }

    // Neither of these answers the probe: a layer below must read this reader, whose marks show that it was polled.

    pub(crate) fn is_end_stream(&self) -> bool {
        self.body.is_over()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.body.rest()
    }
}
