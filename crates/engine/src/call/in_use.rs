//! The optional parts of the library that this process uses. Until one is in use, calls leave out what only it needs.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sets of endpoints. Without one, no frame is opened.
pub static ENDPOINTS: InUse = InUse::new();

/// Layers that read response bodies. Without one, no verdict is looked for.
pub(crate) static BODIES: InUse = InUse::new();

/// Guards, which judge the attempts that time limits end. Without one, no upload is watched.
pub static GUARDS: InUse = InUse::new();

/// Clients for retries on new connections. Without one, no retry is marked.
pub(crate) static FRESH_RETRIES: InUse = InUse::new();

/// A part that is in use from its first value on.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct InUse(AtomicBool);

impl InUse {
    const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Records that the process has a value of this part.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if the process may have a value of this part.
    #[inline]
    pub(crate) fn is_begun(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
