//! The queue of frames that some reader has not returned yet.
//!
//! A frame is added at the end when it is read from the caller's body. It is freed at the front when the slowest reader
//! has passed it. A position is a number of frames from the start of the body. Each kept frame counts the readers
//! positioned right before it. A reader therefore moves, joins and leaves in constant time, regardless of the number of
//! readers and frames.

mod chunk;
mod kept;

use std::vec;

use bytes::Bytes;

use crate::memory::Allowance;

use chunk::{BY_LENGTH, CHARGE_OF_PLACE, Chunk, Entry, wide};
pub(crate) use kept::{KeptFrame, Next};

/// Frames that no reader needs anymore. They are dropped after the lock is released, because dropping a buffer may run
/// foreign code.
#[derive(Default)]
pub(super) struct Freed {
    first: Option<Entry>,
    rest: Vec<Entry>,
}

impl Freed {
    /// Returns the total charge of these frames.
    pub(super) fn charge(&self) -> usize {
        let entries = self.first.iter().chain(&self.rest);
        entries.fold(0, |sum, entry| sum.saturating_add(entry.charge()))
    }
}

/// All kept frames, in order, for the only reader.
pub(super) struct Remaining(vec::IntoIter<Entry>);

impl Remaining {
    /// Returns the next frame and its charge.
    #[inline]
    pub(super) fn next(&mut self) -> Option<(KeptFrame, usize)> {
        self.0.next().map(|entry| {
            let charge = entry.charge();
            (entry.kept, charge)
        })
    }

    /// Returns `true` if no frames remain.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.0.as_slice().is_empty()
    }
}

/// The queue.
#[derive(Default)]
pub(super) struct Frames {
    /// The position of the front, which is the number of frames that were freed or never kept.
    start: u64,
    /// The frame at position 0. It is stored separately, so that a single-frame body needs no vector.
    first: Option<Entry>,
    /// The position of the first entry in `rest`.
    base: u64,
    /// All further frames, after the empty entries of freed ones. Lookups and additions are cheaper than in a ring
    /// buffer.
    rest: Vec<Entry>,
    /// The number of readers at the end.
    at_end: u32,
    /// The buffer that short frames are copied into. It contains the last frame, if there is one.
    chunk: Option<Chunk>,
}

impl Frames {
    #[inline]
    pub(super) fn start(&self) -> u64 {
        self.start
    }

    /// Returns the position after the last frame that was read.
    #[inline]
    pub(super) fn end_position(&self) -> u64 {
        self.base + u64::try_from(self.rest.len()).unwrap_or(u64::MAX)
    }

    /// Adds a reader at the first frame, which must not have been freed.
    pub(super) fn join(&mut self) {
        self.arrive(0);
    }

    /// Removes a reader at `position`.
    pub(super) fn leave(&mut self, position: u64, allowance: &mut Allowance) -> Option<Freed> {
        match self.entry(position) {
            Some(entry) => entry.before -= 1,
            None => self.at_end -= 1,
        }
        if self.start == self.end_position() {
            self.drop_chunk(allowance);
            return None;
        }
        self.free(allowance)
    }

    /// Removes all readers except one at `position`.
    pub(super) fn leave_all_but(&mut self, position: u64, allowance: &mut Allowance) -> Option<Freed> {
        for entry in self.first.iter_mut().chain(&mut self.rest) {
            entry.before = 0;
        }
        self.at_end = 0;
        self.arrive(position);
        let freed = self.free(allowance);
        self.drop_chunk(allowance);
        freed
    }

    /// Returns the frame at `position` and moves its reader past it, or returns `None` at the end. If no other reader
    /// needs the frame, its charge is released.
    pub(super) fn advance(&mut self, position: u64, allowance: &mut Allowance) -> Option<KeptFrame> {
        let front = position == self.start;
        if matches!(self.entry(position)?.kept, KeptFrame::Filling) {
            self.seal();
        }
        let entry = self.entry(position)?;
        entry.before -= 1;
        let kept = if front && entry.before == 0 {
            allowance.give_back(entry.charge());
            let kept = std::mem::replace(&mut entry.kept, KeptFrame::Data(Bytes::new()));
            self.pass_front();
            kept
        } else {
            entry.kept.clone()
        };
        self.arrive(position + 1);
        self.drop_chunk(allowance);
        Some(kept)
    }

    /// Fast path of `advance`. Returns `None` unless the next frame is data and not the first kept frame. The flag is
    /// `true` if the frame is the last one read.
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
        let KeptFrame::Data(data) = &entry.kept else { return None };
        entry.before -= 1;
        *after += 1;
        Some((data.clone(), last))
    }

    /// Keeps a frame that a reader at the end has just read, and moves that reader past it.
    pub(super) fn push(&mut self, kept: KeptFrame, allowance: &mut Allowance) {
        self.close(allowance);
        self.store(kept, BY_LENGTH);
    }

    fn store(&mut self, kept: KeptFrame, charge: u32) {
        let before = std::mem::replace(&mut self.at_end, 1) - 1;
        let entry = Entry { kept, before, charge };
        if self.base == 0 {
            self.first = Some(entry);
            self.base = 1;
        } else {
            self.rest.push(entry);
        }
    }

    /// Fast path of `push`: keeps data for the only reader at the end.
    #[inline(always)]
    pub(super) fn push_data(&mut self, data: Bytes, allowance: &mut Allowance) {
        if self.rest.len() == self.rest.capacity() || self.chunk.is_some() {
            return self.push_slowly(data, allowance);
        }
        self.rest.push(Entry { kept: KeptFrame::Data(data), before: 0, charge: BY_LENGTH });
    }

    #[cold]
    fn push_slowly(&mut self, data: Bytes, allowance: &mut Allowance) {
        self.push(KeptFrame::Data(data), allowance);
    }

    /// Appends data from the only reader at the end to the last frame. Returns `false` if the chunk is full or the last
    /// frame cannot grow.
    #[inline]
    pub(super) fn append(&mut self, data: &[u8]) -> bool {
        match &mut self.chunk {
            Some(chunk) if chunk.filling && self.at_end == 1 && data.len() <= chunk.room() => {
                chunk.data.extend_from_slice(data);
                true
            }
            _ => false,
        }
    }

    /// Copies data that a reader at the end has just read, and moves that reader past it. Returns `false` if the
    /// allowance is too small; after that, nothing may be kept.
    pub(super) fn push_copy(&mut self, mut data: &[u8], allowance: &mut Allowance) -> bool {
        while !data.is_empty() {
            let chunk = match &mut self.chunk {
                Some(chunk) if chunk.room() > 0 => chunk,
                _ => {
                    self.close(allowance);
                    let Some(capacity) = allowance.take_chunk(data.len()) else { return false };
                    self.chunk.insert(Chunk::new(capacity))
                }
            };
            let (fits, rest) = data.split_at(data.len().min(chunk.room()));
            chunk.data.extend_from_slice(fits);
            data = rest;
            if !std::mem::replace(&mut chunk.filling, true) {
                // The chunk's charge covers its first frame.
                let further = std::mem::replace(&mut chunk.begun, true);
                let charge = if further { CHARGE_OF_PLACE } else { 0 };
                if !allowance.take(wide(charge)) {
                    return false;
                }
                self.store(KeptFrame::Filling, charge);
            }
        }
        true
    }

    /// Turns the filled part of the chunk into a frame.
    fn seal(&mut self) {
        let Some(chunk) = &mut self.chunk else { return };
        if !std::mem::take(&mut chunk.filling) {
            return;
        }
        let data = chunk.data.split().freeze();
        if let Some(last) = self.last() {
            last.kept = KeptFrame::Data(data);
        }
    }

    /// Closes the chunk, so that nothing more is copied into it. Its last frame takes over its charge.
    fn close(&mut self, allowance: &mut Allowance) {
        let Some(chunk) = self.chunk.take() else { return };
        match self.last() {
            Some(last) => {
                if chunk.filling {
                    last.kept = KeptFrame::Data(chunk.data.freeze());
                }
                last.charge += chunk.charge;
            }
            None => allowance.give_back(wide(chunk.charge)),
        }
    }

    /// Closes the chunk if it contains no frame and there is only one reader.
    #[inline]
    fn drop_chunk(&mut self, allowance: &mut Allowance) {
        if self.chunk.is_some() && self.at_end == 1 && self.start == self.end_position() {
            self.close(allowance);
        }
    }

    /// Returns the last frame, unless it was freed.
    fn last(&mut self) -> Option<&mut Entry> {
        if self.start == self.end_position() { None } else { self.rest.last_mut().or(self.first.as_mut()) }
    }

    /// Returns `true` if exactly one reader is at the end.
    pub(super) fn one_at_end(&self) -> bool {
        self.at_end == 1
    }

    /// Moves the only reader past another frame, which is not kept.
    pub(super) fn pass(&mut self) {
        self.base = self.end_position() + 1;
        self.start = self.base;
        self.rest.clear();
    }

    /// Removes all kept frames, for the caller to drop. Only a reader at the end can continue.
    pub(super) fn stop_keeping(&mut self) -> Freed {
        self.base = self.end_position();
        self.start = self.base;
        self.at_end = 1;
        self.chunk = None;
        Freed { first: self.first.take(), rest: std::mem::take(&mut self.rest) }
    }

    /// Takes all frames for the only reader. The first frame must have been freed.
    pub(super) fn hand_over(&mut self, allowance: &mut Allowance) -> Remaining {
        self.close(allowance);
        self.close_gap();
        self.base = self.end_position();
        self.at_end = 1;
        Remaining(std::mem::take(&mut self.rest).into_iter())
    }

    fn arrive(&mut self, position: u64) {
        match self.entry(position) {
            Some(entry) => entry.before += 1,
            None => self.at_end += 1,
        }
    }

    /// Returns the frame at `position`, which must not have been freed, or `None` at the end.
    fn entry(&mut self, position: u64) -> Option<&mut Entry> {
        match position.checked_sub(self.base) {
            Some(index) => self.rest.get_mut(usize::try_from(index).ok()?),
            None => self.first.as_mut(),
        }
    }

    /// Returns the number of entries in `rest` whose frames were freed.
    fn gap(&self) -> usize {
        usize::try_from(self.start.saturating_sub(self.base)).unwrap_or(usize::MAX)
    }

    /// Removes the empty entries.
    fn close_gap(&mut self) {
        let gap = self.gap();
        self.rest.drain(..gap);
        self.base = self.base.max(self.start);
        // Freed entries are no longer charged, so their memory is returned too.
        if self.rest.len() < self.rest.capacity() / 4 {
            self.rest.shrink_to(2 * self.rest.len());
        }
    }

    /// Records that the frame at the front was taken.
    fn pass_front(&mut self) {
        self.start += 1;
        self.first = None;
        let gap = self.gap();
        if gap > 32 && gap > self.rest.len() / 2 {
            self.close_gap();
        }
    }

    /// Frees the frames at the front that no reader needs.
    fn free(&mut self, allowance: &mut Allowance) -> Option<Freed> {
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
        let rest = if count == self.rest.len() {
            self.close(allowance);
            std::mem::take(&mut self.rest)
        } else {
            self.rest.drain(..count).collect()
        };
        self.base += u64::try_from(count).unwrap_or(u64::MAX);
        self.start = self.base;
        Some(Freed { first, rest })
    }
}
