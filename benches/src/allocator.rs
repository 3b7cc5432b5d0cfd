//! A counting allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

static CALLS: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

/// The system's allocator with counts over all threads. A program uses it as its
/// `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

/// The allocations since the start of the process.
#[derive(Debug, Clone, Copy)]
pub struct Allocations {
    /// The number of allocations and reallocations.
    pub calls: u64,
    /// The number of bytes allocated in all.
    pub bytes: u64,
    /// The number of bytes in use.
    pub live: u64,
}

impl Allocations {
    /// Returns the current counts.
    pub fn now() -> Self {
        let bytes = BYTES.load(Ordering::Relaxed);
        let live = bytes - FREED.load(Ordering::Relaxed);
        Self { calls: CALLS.load(Ordering::Relaxed), bytes, live }
    }
}

fn count(bytes: usize) {
    CALLS.fetch_add(1, Ordering::Relaxed);
    BYTES.fetch_add(bytes as u64, Ordering::Relaxed);
}

fn uncount(bytes: usize) {
    FREED.fetch_add(bytes as u64, Ordering::Relaxed);
}

#[allow(unsafe_code, reason = "an allocator that counts can be written no other way")]
// SAFETY: every call is passed to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        uncount(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        uncount(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }
}
