//! The frames that some reader has yet to see: in at the end as they are read from the caller's
//! body, out at the front as the slowest reader moves on.
//!
//! A position is the number of frames before it. Each kept frame counts the readers that stand
//! right before it, so that moving, joining and leaving take constant time however many readers and
//! frames there are, and the front can be freed as soon as nobody stands before it.

use std::vec;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;

use super::memory::{Allowance, least_charge};
use super::progress::source_error;
use super::{BoxError, ReplayError};

/// A frame, or the error in its place, as it is kept.
#[derive(Clone)]
pub(super) enum Kept {
    Data(Bytes),
    // Boxed, for it comes once and is large.
    Trailers(Box<HeaderMap>),
    Failed(ReplayError),
}

impl Kept {
    /// The bytes that keeping it is charged with.
    #[inline]
    pub(super) fn charge(&self) -> usize {
        let none = least_charge(0);
        match self {
            Kept::Data(data) => least_charge(data.len()),
            Kept::Trailers(trailers) => trailers.iter().fold(none, |sum, (name, value)| {
                sum.saturating_add(name.as_str().len() + value.len() + none)
            }),
            Kept::Failed(_) => none,
        }
    }
}

/// What a reader gets next. A frame has room for trailers and is costly to move, so that only data,
/// which is nearly all there is, is handed around as it is.
pub(super) enum Next {
    Data(Bytes),
    Other(Box<Frame<Bytes>>),
    Failed(ReplayError),
}

impl Next {
    /// What the caller's body said.
    #[inline]
    pub(super) fn of<E: Into<BoxError>>(answer: Option<Result<Frame<Bytes>, E>>) -> Option<Self> {
        Some(match answer? {
            Ok(frame) => match frame.into_data() {
                Ok(data) => Next::Data(data),
                Err(other) => Next::Other(Box::new(other)),
            },
            Err(error) => Next::Failed(source_error(error)),
        })
    }

    /// How it is kept: a kind of frame that is not known yet cannot be.
    #[inline]
    pub(super) fn to_kept(&self) -> Option<Kept> {
        match self {
            Next::Data(data) => Some(Kept::Data(data.clone())),
            Next::Other(frame) => {
                frame.trailers_ref().map(|trailers| Kept::Trailers(Box::new(trailers.clone())))
            }
            Next::Failed(error) => Some(Kept::Failed(error.clone())),
        }
    }
}

impl From<Kept> for Next {
    #[inline]
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Data(data) => Next::Data(data),
            Kept::Trailers(trailers) => Next::Other(Box::new(Frame::trailers(*trailers))),
            Kept::Failed(error) => Next::Failed(error),
        }
    }
}

#[derive(Default)]
struct Entry {
    /// `None` before it was read, and once nobody needs it.
    kept: Option<Kept>,
    /// The readers that stand right before this frame.
    before: usize,
}

/// Frames that nobody needs any more, to be dropped once no lock is held: a buffer may be owned by
/// foreign code that runs when it is freed.
#[derive(Default)]
pub(super) struct Freed {
    first: Option<Entry>,
    rest: Vec<Entry>,
}

impl Freed {
    /// What the frames were charged with.
    pub(super) fn charge(&self) -> usize {
        let kept = self.first.iter().chain(&self.rest).filter_map(|entry| entry.kept.as_ref());
        kept.fold(0, |sum, kept| sum.saturating_add(kept.charge()))
    }
}

/// All that is kept, in order, for the only reader there is.
pub(super) struct Remaining(vec::IntoIter<Entry>);

impl Remaining {
    #[inline]
    pub(super) fn next(&mut self) -> Option<Kept> {
        loop {
            let entry = self.0.next()?;
            if entry.kept.is_some() {
                return entry.kept;
            }
        }
    }

    /// Whether the frame returned last was the last.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}

/// The queue.
#[derive(Default)]
pub(super) struct Frames {
    /// The position of the front: the frames that were freed, or never kept.
    start: u64,
    /// The position after the last frame that was read.
    end: u64,
    /// The frame at position 0, so that a body of one frame needs no vector.
    first: Option<Entry>,
    /// The frames up to `end`, between places of some that were freed and places for more: so a
    /// frame is found and added in fewer steps than in a ring.
    rest: Vec<Entry>,
    /// The places in `rest` that have been filled.
    filled: usize,
    /// The readers that have seen everything that was read.
    at_end: usize,
}

impl Frames {
    #[inline]
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.end
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
        if self.start == self.end { None } else { self.free() }
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
    /// end. If nobody else needs it, what it was charged with is given back.
    pub(super) fn advance(&mut self, position: u64, allowance: &mut Allowance) -> Option<Kept> {
        let front = position == self.start;
        let entry = self.entry(position)?;
        entry.before -= 1;
        let kept = if front && entry.before == 0 {
            let kept = entry.kept.take()?;
            allowance.give_back(kept.charge());
            self.pass_front();
            kept
        } else {
            entry.kept.clone()?
        };
        self.arrive(position + 1);
        Some(kept)
    }

    /// The same in a few steps, for data that others still need; else `None`.
    #[inline(always)]
    pub(super) fn advance_data(&mut self, position: u64) -> Option<Bytes> {
        let back = usize::try_from(self.end.checked_sub(position)?).ok()?;
        let index = self.filled.checked_sub(back)?;
        let (entry, after) = match self.rest.get_mut(index..self.filled)? {
            [entry, after, ..] => (entry, &mut after.before),
            [entry] => (entry, &mut self.at_end),
            [] => return None,
        };
        let Some(Kept::Data(data)) = &entry.kept else { return None };
        if entry.before == 1 && position == self.start {
            return None;
        }
        let data = data.clone();
        entry.before -= 1;
        *after += 1;
        Some(data)
    }

    /// Keeps a frame that a reader at the end has just read and moves past.
    #[inline(always)]
    pub(super) fn push(&mut self, kept: Kept) {
        let before = std::mem::replace(&mut self.at_end, 1) - 1;
        let entry = Entry { kept: Some(kept), before };
        self.end += 1;
        match self.rest.get_mut(self.filled) {
            Some(place) => {
                *place = entry;
                self.filled += 1;
            }
            None => self.push_slowly(entry),
        }
    }

    /// Makes room, unless it is the first frame of all.
    #[cold]
    fn push_slowly(&mut self, entry: Entry) {
        if self.end == 1 {
            self.first = Some(entry);
            return;
        }
        self.rest.push(entry);
        self.filled = self.rest.len();
        // As many places as were allocated.
        self.rest.resize_with(self.rest.capacity(), Entry::default);
    }

    /// The only reader has read one more frame, which is not kept.
    pub(super) fn pass(&mut self) {
        self.end += 1;
        self.start = self.end;
    }

    /// Gives up all that is kept: only a reader at the end can go on.
    pub(super) fn give_up(&mut self) -> Freed {
        self.start = self.end;
        self.at_end = 1;
        self.filled = 0;
        Freed { first: self.first.take(), rest: std::mem::take(&mut self.rest) }
    }

    /// Everything but the first frame of all, which was freed, for the only reader there is.
    pub(super) fn hand_over(&mut self) -> Remaining {
        self.rest.truncate(self.filled);
        self.filled = 0;
        self.at_end = 1;
        Remaining(std::mem::take(&mut self.rest).into_iter())
    }

    fn arrive(&mut self, position: u64) {
        match self.entry(position) {
            Some(entry) => entry.before += 1,
            None => self.at_end += 1,
        }
    }

    /// The frame at `position`, which was not freed; `None` at the end.
    fn entry(&mut self, position: u64) -> Option<&mut Entry> {
        let back = usize::try_from(self.end.checked_sub(position)?).ok()?;
        match self.filled.checked_sub(back) {
            Some(index) => self.rest.get_mut(index..self.filled)?.first_mut(),
            None => self.first.as_mut(),
        }
    }

    /// How many places of `rest` are of frames that were freed.
    fn gaps(&self) -> usize {
        let kept = usize::try_from(self.end - self.start).unwrap_or(usize::MAX);
        self.filled.saturating_sub(kept)
    }

    /// The frame at the front was taken.
    fn pass_front(&mut self) {
        self.start += 1;
        self.first = None;
        let gaps = self.gaps();
        if gaps > 32 && gaps > self.filled / 2 {
            self.rest.drain(..gaps);
            self.filled -= gaps;
        }
    }

    /// Takes the frames off the front that no reader stands before.
    fn free(&mut self) -> Option<Freed> {
        let unneeded = |entry: &Entry| entry.before == 0;
        let first = self.first.take_if(|entry| unneeded(entry));
        if self.first.is_some() {
            return None;
        }
        let gaps = self.gaps();
        let kept = self.rest.iter().take(self.filled).skip(gaps);
        let count = kept.take_while(|entry| unneeded(entry)).count();
        if first.is_none() && count == 0 {
            return None;
        }
        self.start += u64::from(first.is_some()) + u64::try_from(count).unwrap_or(u64::MAX);
        let rest = self.rest.drain(..gaps + count).collect();
        self.filled -= gaps + count;
        Some(Freed { first, rest })
    }
}
