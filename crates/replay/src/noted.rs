//! Complete bodies whose readers record an inspection by a client, as a sign that the body was sent.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::memory::ReplayCharge;
use crate::progress::Polled;

thread_local! {
    /// A spare value for the thread's next call, which would otherwise allocate one.
    static SPARE: Cell<Option<Arc<SharedData>>> = const { Cell::new(None) };
}

/// One reader of a noted body. The readers share the body, which never changes, and the record.
pub(crate) struct Noted {
    /// `None` only while the reader is dropped.
    whole: Option<Arc<SharedData>>,
    hint: SizeHint,
    /// `true` once this reader has returned the data.
    given: bool,
}

/// The part shared by all readers.
#[derive(Default)]
struct SharedData {
    /// It guards no other data, so `Relaxed` is enough.
    inspected: AtomicBool,
    /// `None` for an empty body.
    data: Option<Charged>,
}

/// A buffer, and its charge until the last reader is dropped.
type Charged = (Bytes, ReplayCharge);

impl Noted {
    /// Creates the first reader of a body that consists of this buffer or is empty.
    pub(crate) fn new(hint: SizeHint, data: Option<Charged>) -> Self {
        let mut whole = SPARE.try_with(Cell::take).ok().flatten().unwrap_or_default();
        match Arc::get_mut(&mut whole) {
            Some(spare) => *spare = SharedData { inspected: AtomicBool::new(false), data },
            None => whole = Arc::new(SharedData { inspected: AtomicBool::new(false), data }),
        }
        Self { whole: Some(whole), hint, given: false }
    }

    fn data(&self) -> Option<&Bytes> {
        self.whole.as_ref()?.data.as_ref().map(|(data, _)| data)
    }

    // Not inlined, like dropping, because inlining would slow down the code for other bodies.
    /// Returns another reader, unless this one has returned the data.
    #[inline(never)]
    pub(crate) fn try_clone(&self) -> Option<Self> {
        (!self.given).then(|| Self { whole: self.whole.clone(), hint: SizeHint::clone(&self.hint), given: false })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.data().is_none()
    }

    pub(crate) fn is_replayable(&self) -> bool {
        !self.given
    }

    pub(crate) fn was_inspected(&self) -> bool {
        self.whole.as_ref().is_some_and(|whole| whole.inspected.load(Ordering::Relaxed))
    }

    pub(crate) fn set_inspected(&self, inspected: bool) {
        if let Some(whole) = &self.whole {
            whole.inspected.store(inspected, Ordering::Relaxed);
        }
    }

    /// Records an inspection if this is the only reader.
    #[inline(never)]
    pub(crate) fn note_if_alone(&self) {
        if self.whole.as_ref().is_some_and(|whole| Arc::strong_count(whole) == 1) {
            self.set_inspected(true);
        }
    }

    /// Records that a client has checked the end or the length, because it need not poll an empty body.
    #[inline(never)]
    pub(crate) fn note_look(&self) {
        if self.is_empty() {
            self.set_inspected(true);
        }
    }

    #[inline(never)]
    pub(crate) fn poll_frame(&mut self) -> Polled {
        self.set_inspected(true);
        let data = if self.given { None } else { self.data().cloned() };
        self.given = data.is_some() || self.given;
        Poll::Ready(data.map(|data| Ok(Frame::data(data))))
    }

    #[inline(never)]
    pub(crate) fn is_end_stream(&self) -> bool {
        self.given || self.is_empty()
    }

    #[inline(never)]
    pub(crate) fn size_hint(&self) -> SizeHint {
        match (self.given, self.hint.exact()) {
            (true, Some(_)) => SizeHint::with_exact(0),
            _ => SizeHint::clone(&self.hint),
        }
    }
}

impl Drop for Noted {
    #[inline(never)]
    fn drop(&mut self) {
        if let Some(mut whole) = self.whole.take()
            && let Some(last) = Arc::get_mut(&mut whole)
        {
            last.data = None;
            let _ = SPARE.try_with(|spare| spare.set(Some(whole)));
        }
    }
}
