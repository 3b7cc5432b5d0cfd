//! What a call costs the allocator: nothing, once its destination has asked for a token before.
#![allow(unsafe_code, reason = "a counting allocator cannot be written without")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helpers too")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Budget, Failure, FailureKind};

/// The system's allocator, which counts for each thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is handed on as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_known_destination_costs_no_allocation() {
    let failure = Failure::new(FailureKind::Server);
    for budget in [
        RetryBudget::default(),
        RetryBudget::default().shared(),
        RetryBudget::aws_quota().capacity(10.0).unwrap(),
    ] {
        let acquire = |now| budget.acquire("api:443", &failure, now);
        drop(acquire(Duration::ZERO));
        let before = ALLOCATIONS.get();
        for second in 0..100 {
            drop(acquire(Duration::from_secs(second)));
            acquire(Duration::from_secs(second)).map(|permit| permit.spend());
            budget.on_success("api:443", 0);
            budget.on_success("other:443", 0);
        }
        assert!(budget.refusals() > 0, "refusals cost nothing either");
        assert_eq!(ALLOCATIONS.get() - before, 0);
    }
}
