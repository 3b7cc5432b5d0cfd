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

/// A frame, or the error in its place, as it is kept: in no more room than the data.
#[derive(Clone)]
pub(super) enum Kept {
    Data(Bytes),
    Other(Box<Other>),
}

/// What comes once, if at all.
#[derive(Clone)]
pub(super) enum Other {
    Trailers(HeaderMap),
    Failed(ReplayError),
}

impl Kept {
    /// The bytes that keeping it is charged with.
    #[inline]
    pub(super) fn charge(&self) -> usize {
        let none = least_charge(0);
        match self {
            Kept::Data(data) => least_charge(data.len()),
            Kept::Other(other) => match &**other {
                Other::Trailers(trailers) => trailers.iter().fold(none, |sum, (name, value)| {
                    sum.saturating_add(name.as_str().len() + value.len() + none)
                }),
                Other::Failed(_) => none,
            },
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
        let other = match self {
            Next::Data(data) => return Some(Kept::Data(data.clone())),
            Next::Other(frame) => Other::Trailers(frame.trailers_ref()?.clone()),
            Next::Failed(error) => Other::Failed(error.clone()),
        };
        Some(Kept::Other(Box::new(other)))
    }
}

impl From<Kept> for Next {
    #[inline]
    fn from(kept: Kept) -> Self {
        match kept {
            Kept::Data(data) => Next::Data(data),
            Kept::Other(other) => match *other {
                Other::Trailers(trailers) => Next::Other(Box::new(Frame::trailers(trailers))),
                Other::Failed(error) => Next::Failed(error),
            },
        }
    }
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
    rest: Vec<Entry>,
}

impl Freed {
    /// What the frames were charged with.
    pub(super) fn charge(&self) -> usize {
        let entries = self.first.iter().chain(&self.rest);
        entries.fold(0, |sum, entry| sum.saturating_add(entry.kept.charge()))
    }
}

/// All that is kept, in order, for the only reader there is.
pub(super) struct Remaining(vec::IntoIter<Entry>);

impl Remaining {
    #[inline]
    pub(super) fn next(&mut self) -> Option<Kept> {
        self.0.next().map(|entry| entry.kept)
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
    /// The frame at position 0, so that a body of one frame needs no vector.
    first: Option<Entry>,
    /// The position of the first place in `rest`.
    base: u64,
    /// All further frames, behind empty places of some that were freed: so a frame is found and
    /// added in fewer steps than in a ring.
    rest: Vec<Entry>,
    /// The readers that have seen everything that was read.
    at_end: usize,
}

impl Frames {
    #[inline]
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// The position after the last frame that was read.
    #[inline]
    pub(super) fn end(&self) -> u64 {
        self.base + u64::try_from(self.rest.len()).unwrap_or(u64::MAX)
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
        if self.start == self.end() { None } else { self.free() }
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
            let kept = std::mem::replace(&mut entry.kept, Kept::Data(Bytes::new()));
            allowance.give_back(kept.charge());
            self.pass_front();
            kept
        } else {
            entry.kept.clone()
        };
        self.arrive(position + 1);
        Some(kept)
    }

    /// The same in a few steps, for data behind the front; else `None`. Also says whether it is the
    /// last frame that was read.
    #[inline(always)]
    pub(super) fn advance_data(&mut self, position: u64) -> Option<(Bytes, bool)> {
        if position <= self.start {
            return None;
        }
        let index = usize::try_from(position.checked_sub(self.base)?).ok()?;
        let (entry, after, last) = match self.rest.get_mut(index..)? {
            [entry, after, ..] => (entry, &mut after.before, false),
            [entry] => (entry, &mut self.at_end, true),
            [] => return None,
        };
        let Kept::Data(data) = &entry.kept else { return None };
        entry.before -= 1;
        *after += 1;
        Some((data.clone(), last))
    }

    /// Keeps a frame that a reader at the end has just read and moves past.
    pub(super) fn push(&mut self, kept: Kept) {
        let before = std::mem::replace(&mut self.at_end, 1) - 1;
        let entry = Entry { kept, before };
        if self.base == 0 {
            self.first = Some(entry);
            self.base = 1;
        } else {
            self.rest.push(entry);
        }
    }

    /// The same in a few steps, for data and a reader that is the only one at the end.
    #[inline(always)]
    pub(super) fn push_data(&mut self, data: Bytes) {
        if self.rest.len() == self.rest.capacity() {
            return self.push_slowly(data);
        }
        self.rest.push(Entry { kept: Kept::Data(data), before: 0 });
    }

    #[cold]
    fn push_slowly(&mut self, data: Bytes) {
        self.push(Kept::Data(data));
    }

    /// Whether one reader alone has seen everything that was read.
    pub(super) fn one_at_end(&self) -> bool {
        self.at_end == 1
    }

    /// The only reader has read one more frame, which is not kept.
    pub(super) fn pass(&mut self) {
        self.base = self.end() + 1;
        self.start = self.base;
        self.rest.clear();
    }

    /// Gives up all that is kept: only a reader at the end can go on.
    pub(super) fn give_up(&mut self) -> Freed {
        self.base = self.end();
        self.start = self.base;
        self.at_end = 1;
        Freed { first: self.first.take(), rest: std::mem::take(&mut self.rest) }
    }

    /// Everything but the first frame of all, which was freed, for the only reader there is.
    pub(super) fn hand_over(&mut self) -> Remaining {
        self.close_gap();
        self.base = self.end();
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
        match position.checked_sub(self.base) {
            Some(index) => self.rest.get_mut(usize::try_from(index).ok()?),
            None => self.first.as_mut(),
        }
    }

    /// How many places of `rest` are of frames that were freed.
    fn gap(&self) -> usize {
        usize::try_from(self.start.saturating_sub(self.base)).unwrap_or(usize::MAX)
    }

    /// Takes the empty places out.
    fn close_gap(&mut self) {
        let gap = self.gap();
        self.rest.drain(..gap);
        self.base = self.base.max(self.start);
    }

    /// The frame at the front was taken.
    fn pass_front(&mut self) {
        self.start += 1;
        self.first = None;
        let gap = self.gap();
        if gap > 32 && gap > self.rest.len() / 2 {
            self.close_gap();
        }
    }

    /// Takes the frames off the front that no reader stands before.
    fn free(&mut self) -> Option<Freed> {
        let unneeded = |entry: &Entry| entry.before == 0;
        let first = self.first.take_if(|entry| unneeded(entry));
        if self.first.is_some() {
            return None;
        }
        self.close_gap();
        let count = self.rest.iter().take_while(|entry| unneeded(entry)).count();
        if first.is_none() && count == 0 {
            return None;
        }
        let rest = self.rest.drain(..count).collect();
        self.base += u64::try_from(count).unwrap_or(u64::MAX);
        self.start = self.base;
        Some(Freed { first, rest })
    }
}
