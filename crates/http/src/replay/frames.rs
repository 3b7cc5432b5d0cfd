//! The frames that some reader has yet to see: in at the end as they are read from the caller's
//! body, out at the front as the slowest reader moves on.
//!
//! A position is the number of frames before it. Each kept frame counts the readers that stand
//! right before it, so that moving, joining and leaving take constant time however many readers and
//! frames there are, and the front can be freed as soon as nobody stands before it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use super::{BoxError, ReplayError};

/// The least that a frame is charged with: about what the queue spends on it.
const LEAST_CHARGE: usize = 32;

/// A frame, or the error in its place, as it is kept.
#[derive(Clone)]
pub(super) enum Kept {
    Data(Bytes),
    // Boxed, for it comes once and is large.
    Trailers(Box<HeaderMap>),
    Failed(ReplayError),
}

impl Kept {
    pub(super) fn failed(error: BoxError) -> Self {
        Kept::Failed(ReplayError::Source(Arc::from(error)))
    }

    /// What a reader gets.
    #[inline]
    pub(super) fn into_next(self) -> Next {
        match self {
            Kept::Data(data) => Next::Data(data),
            Kept::Trailers(trailers) => Next::Other(Box::new(Ok(Frame::trailers(*trailers)))),
            Kept::Failed(error) => Next::Other(Box::new(Err(error.into()))),
        }
    }

    /// The bytes that keeping it is charged with.
    #[inline]
    pub(super) fn charge(&self) -> usize {
        match self {
            Kept::Data(data) => data.len().max(LEAST_CHARGE),
            Kept::Trailers(trailers) => trailers.iter().fold(LEAST_CHARGE, |sum, (name, value)| {
                sum.saturating_add(name.as_str().len() + value.len() + LEAST_CHARGE)
            }),
            Kept::Failed(_) => LEAST_CHARGE,
        }
    }
}

/// What a reader gets next. A frame has room for trailers and is costly to move, so that only data,
/// which is nearly all there is, is handed around as it is.
pub(super) enum Next {
    Data(Bytes),
    Other(Box<Result<Frame<Bytes>, BoxError>>),
}

struct Entry {
    kept: Kept,
    /// The readers that stand right before this frame.
    before: usize,
}

/// Frames that nobody needs any more, to be dropped once no lock is held: a buffer may be owned by
/// foreign code that runs when it is freed.
#[derive(Default)]
pub(super) struct Freed {
    first: Option<Entry>,
    rest: VecDeque<Entry>,
}

impl Freed {
    /// What the frames were charged with.
    pub(super) fn charge(&self) -> usize {
        let entries = self.first.iter().chain(&self.rest);
        entries.fold(0, |sum, entry| sum.saturating_add(entry.kept.charge()))
    }
}

/// The queue. The first frame has a place of its own, so that a body of one frame allocates none.
#[derive(Default)]
pub(super) struct Frames {
    /// The position of the front: the frames that were freed, or never kept.
    start: u64,
    first: Option<Entry>,
    rest: VecDeque<Entry>,
    /// The readers that have seen everything that was read.
    at_end: usize,
}

impl Frames {
    /// The position of the front.
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The position after the last frame that was read.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        let kept = usize::from(self.first.is_some()) + self.rest.len();
        self.start + u64::try_from(kept).unwrap_or(u64::MAX)
    }

    /// A reader joins at the first frame of all, which must not have been freed.
    pub(super) fn join(&mut self) {
        self.arrive(0);
    }

    /// A reader leaves from `position`.
    pub(super) fn leave(&mut self, position: u64) -> Option<Freed> {
        match self.entry(position) {
            Some(entry) => entry.before -= 1,
            None => self.at_end -= 1,
        }
        self.free()
    }

    /// Every reader leaves but one, which stands at `position`.
    pub(super) fn leave_all_but(&mut self, position: u64) -> Option<Freed> {
        for entry in self.first.iter_mut().chain(&mut self.rest) {
            entry.before = 0;
        }
        self.at_end = 0;
        self.arrive(position);
        self.free()
    }

    /// The frame at `position`, for a reader that stands there and moves past it; `None` at the
    /// end. Also says what it was charged with if nobody else needs it.
    #[inline]
    pub(super) fn advance(&mut self, position: u64) -> Option<(Kept, Option<usize>)> {
        if position == self.end() {
            return None;
        }
        let front = position == self.start;
        let entry = self.entry(position)?;
        entry.before -= 1;
        let taken = if front && entry.before == 0 {
            let kept = self.pop()?.kept;
            let charge = kept.charge();
            (kept, Some(charge))
        } else {
            (entry.kept.clone(), None)
        };
        self.arrive(position + 1);
        Some(taken)
    }

    /// Keeps a frame that a reader at the end has just read and moves past.
    #[inline]
    pub(super) fn push(&mut self, kept: Kept) {
        let entry = Entry { kept, before: self.at_end - 1 };
        self.at_end = 1;
        if self.first.is_none() && self.rest.is_empty() {
            self.first = Some(entry);
        } else {
            self.rest.push_back(entry);
        }
    }

    /// The only reader has read one more frame, which is not kept.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.start += 1;
    }

    /// Gives up all that is kept: only a reader at the end can go on.
    pub(super) fn give_up(&mut self) -> Freed {
        self.start = self.end();
        self.at_end = 1;
        Freed { first: self.first.take(), rest: std::mem::take(&mut self.rest) }
    }

    #[inline]
    fn arrive(&mut self, position: u64) {
        match self.entry(position) {
            Some(entry) => entry.before += 1,
            None => self.at_end += 1,
        }
    }

    #[inline]
    fn entry(&mut self, position: u64) -> Option<&mut Entry> {
        let index = usize::try_from(position.checked_sub(self.start)?).ok()?;
        match (&mut self.first, index) {
            (Some(first), 0) => Some(first),
            (Some(_), _) => self.rest.get_mut(index - 1),
            (None, _) => self.rest.get_mut(index),
        }
    }

    fn pop(&mut self) -> Option<Entry> {
        let entry = self.first.take().or_else(|| self.rest.pop_front())?;
        self.start += 1;
        Some(entry)
    }

    /// Takes the frames off the front that no reader stands before.
    fn free(&mut self) -> Option<Freed> {
        let unneeded = |entry: &Entry| entry.before == 0;
        let first = self.first.take_if(|entry| unneeded(entry));
        let count = if self.first.is_some() {
            0
        } else {
            self.rest.iter().take_while(|entry| unneeded(entry)).count()
        };
        if first.is_none() && count == 0 {
            return None;
        }
        self.start += u64::from(first.is_some()) + u64::try_from(count).unwrap_or(u64::MAX);
        let mut freed = Freed { first, ..Freed::default() };
        if count > 0 {
            let needed = self.rest.split_off(count);
            freed.rest = std::mem::replace(&mut self.rest, needed);
        }
        Some(freed)
    }
}
