//! The mark of an empty body that a client has inspected, which shows that the body was sent.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// A spare mark that no body uses.
    static SPARE: Cell<Option<Arc<AtomicBool>>> = const { Cell::new(None) };
}

/// The mark of one empty body, shared by its readers. It is absent if nothing is recorded.
///
/// The thread that drops the last reference keeps the mark for its next call. It guards no other data, so `Relaxed`
/// suffices.
#[derive(Default)]
pub(crate) struct Inspected(Option<Arc<AtomicBool>>);

impl Inspected {
    /// Creates the mark of a body whose inspections are recorded.
    pub(crate) fn recording() -> Self {
        let spare = SPARE.try_with(Cell::take).ok().flatten();
        let this = Self(Some(spare.unwrap_or_default()));
        this.set(false);
        this
    }

    pub(crate) fn share(&self) -> Self {
        Self(self.0.clone())
    }

    #[inline]
    pub(crate) fn set(&self, inspected: bool) {
        if let Some(mark) = &self.0 {
            mark.store(inspected, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> bool {
        self.0.as_ref().is_some_and(|mark| mark.load(Ordering::Relaxed))
    }
}

impl Drop for Inspected {
    #[inline]
    fn drop(&mut self) {
        if let Some(mark) = self.0.take()
            && Arc::strong_count(&mark) == 1
        {
            // Without a spare mark, a call allocates its own.
            let _ = SPARE.try_with(|spare| spare.set(Some(mark)));
        }
    }
}
