//! An allocator that counts allocations per thread.
//!
//! ```
//! use reattempt_testing::{CountingAllocator, allocations_of};
//!
//! #[global_allocator]
//! static ALLOCATOR: CountingAllocator = CountingAllocator;
//!
//! assert_eq!(allocations_of(|| Box::new(1)), 1);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator with per-thread counts, so that tests can run concurrently.
#[derive(Debug)]
pub struct CountingAllocator;

#[allow(unsafe_code, reason = "an allocator that counts can be written no other way")]
// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        add(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        subtract(layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        subtract(layout.size());
        add(size);
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

fn add(size: usize) {
    IN_USE.set(IN_USE.get().wrapping_add_unsigned(size));
}

fn subtract(size: usize) {
    IN_USE.set(IN_USE.get().wrapping_sub_unsigned(size));
}

/// Returns the number of allocations that this thread has made. Growing an allocation counts as one more.
pub fn allocations() -> usize {
    ALLOCATIONS.get()
}

/// Returns the number of allocations that `work` makes on this thread.
pub fn allocations_of<T>(work: impl FnOnce() -> T) -> usize {
    let before = allocations();
    black_box(work());
    allocations() - before
}

/// Returns the bytes that this thread has allocated, minus those that it has freed. Negative if it has freed more, for
/// other threads.
pub fn bytes_in_use() -> isize {
    IN_USE.get()
}
